// Singular values of a matrix, on request: they take a while.

function spectrumBox(side, number, name) {
  const box = h('div', {class: 'spectrum'});
  const ask = async () => {
    replace(box, h('p', {class: 'hint'}, 'Reading the matrix…'));
    try {
      const answer = await source.document(`spectrum/${side}/${number}`, (share) => {
        replace(box, h('p', {class: 'hint'}, `Reading the matrix: ${Math.round(share * 100)} %`));
      });
      replace(
        box,
        spectrumDrawing(answer.values),
        h(
          'p',
          {class: 'hint'},
          `${answer.complete ? 'All' : 'The largest'} ${countText(answer.values.length)} of ${countText(answer.of)}`,
          `: the largest is ${numberText(answer.values[0])}, stable rank ${numberText(answer.stable_rank, 3)}`,
          answer.of_90 ? `; ${countText(answer.of_90)} hold 90 % of the squares` : '',
          answer.of_99 ? `, ${countText(answer.of_99)} hold 99 %` : '',
          answer.complete ? '.' : '. The last of these may be a little too small.',
        ),
      );
      say('Singular values of ' + visible(name));
    } catch (error) {
      replace(box, h('p', {class: 'none'}, error.message));
    }
  };
  replace(box, h('button', {type: 'button', onclick: ask}, 'Compute singular values'));
  return box;
}

function spectrumDrawing(values) {
  const width = 420,
    height = 110,
    most = values[0] || 1;
  const least = Math.max(Math.min(...values.filter((v) => v > 0)), most * 1e-7);
  const y = (value) => 6 + (height - 12) * (1 - Math.log(Math.max(value, least) / least) / (Math.log(most / least) || 1));
  const path = values
    .map(
      (value, i) =>
        `${i ? 'L' : 'M'}${(width * (values.length === 1 ? 0.5 : i / (values.length - 1))).toFixed(1)} ${y(value).toFixed(1)}`,
    )
    .join('');
  const drawing = svg(
    'svg',
    {
      'viewBox': `0 0 ${width} ${height}`,
      'class': 'histogram',
      'role': 'img',
      'aria-label': 'Singular values, the largest first, on a logarithmic scale',
    },
    svg('path', {'d': path, 'class': 'line', 'vector-effect': 'non-scaling-stroke'}),
    svg('line', {x1: 0, x2: width, y1: height - 0.5, y2: height - 0.5, class: 'axis'}),
  );
  drawing.addEventListener('pointermove', (event) => {
    const rect = drawing.getBoundingClientRect();
    const i = Math.min(
      values.length - 1,
      Math.max(0, Math.round(((values.length - 1) * (event.clientX - rect.left)) / rect.width)),
    );
    showTip(event.clientX, event.clientY, numberText(values[i], 6), [['number', String(i + 1)]]);
  });
  drawing.addEventListener('pointerleave', hideTip);
  return drawing;
}
