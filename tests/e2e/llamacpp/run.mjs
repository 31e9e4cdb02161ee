// Runs GGUF files in llama.cpp. Standard input is one JSON document: {text, ids, files: [{path, kind}]}, where kind is
// "logits", "embd", or "none" for a model that is only loaded. For each file, in order, standard output gets a line:
//   {path, loading: true}            before llama.cpp sees the file, so that one that kills the process is known
//   {path, tokens, values} or {path, error}
// where tokens are those of the text, with those that begin and end it, and values are, after the ids, the
// probability of every token, or the embedding.
import {readFileSync, writeSync} from "node:fs";
import {setTimeout} from "node:timers/promises";
import {getLlama} from "node-llama-cpp";

const say = (message) => writeSync(1, JSON.stringify(message) + "\n");

// node-llama-cpp's tokenize() leaves out what llama.cpp puts around a text: here it is, by llama.cpp's own rules. The flags
// are asked of llama.cpp, as node-llama-cpp has none of a vocabulary without a token that begins a text.
function tokensOf(model, text) {
    const {tokens, vocabularyType, _model: flags} = model;
    const wordPiece = vocabularyType === "wpm";
    const begin = wordPiece || flags.shouldPrependBosToken() ? [tokens.bos] : [];
    const end = wordPiece ? [tokens.sep] : flags.shouldAppendEosToken() ? [tokens.eos] : [];
    return [...begin, ...model.tokenize(text), ...end];
}

async function probabilitiesAfter(context, ids) {
    const last = [ids.at(-1), {generateNext: {probabilities: true}}];
    const results = await context.getSequence().controlledEvaluate([...ids.slice(0, -1), last]);
    const byToken = results.at(-1).next.probabilities;
    return Array.from({length: byToken.size}, (_, id) => byToken.get(id));
}

// Its embedding context would put tokens around the ids, so this does what that context does, without them.
async function embeddingOf(context, ids) {
    for await (const _ of context.getSequence().evaluate(ids, {_noSampling: true})) break;
    return Array.from(context._ctx.getEmbedding(ids.length));
}

async function valuesAfter(model, ids, kind) {
    if (kind === "none") return [];
    const size = {contextSize: 64, batchSize: 64, threads: 1, flashAttention: false};
    const context = await model.createContext({...size, _embeddings: kind === "embd"});
    try {
        return await (kind === "embd" ? embeddingOf(context, ids) : probabilitiesAfter(context, ids));
    } finally {
        await context.dispose();
    }
}

const {text, ids, files} = JSON.parse(readFileSync(0, "utf8"));
const complaints = [];
const llama = await getLlama({
    gpu: false, build: "never", skipDownload: true, progressLogs: false,
    logLevel: "error", logger: (_, message) => complaints.push(message.trim()),
});
for (const {path, kind} of files) {
    complaints.length = 0;
    say({path, loading: true});
    try {
        const model = await llama.loadModel({modelPath: path, useMmap: false});
        say({path, tokens: tokensOf(model, text), values: await valuesAfter(model, ids, kind)});
        await model.dispose();
    } catch (error) {
        await setTimeout(100);  // complaints come later than the error
        say({path, error: [error, ...complaints].join("; ")});
    }
}
process.exit(0);
