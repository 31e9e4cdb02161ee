// Stands in for d3-format, which d3-scale brings along for tickFormat(): nobody calls that here, and it is 5 kB. The
// page's numbers are those of the command (text.ts).

const never = (): never => {
  throw new Error('the page formats its own numbers');
};

export {
  never as format,
  never as formatPrefix,
  never as formatSpecifier,
  never as precisionFixed,
  never as precisionPrefix,
  never as precisionRound,
};
