// Histograms of one tensor, or of the same tensor on two sides over each other.

/** series: [{stats, className, label}]. */
function histogramOf(series, isLog) {
  const width = 420,
    height = 150,
    base = height - 18;
  const known = series.filter((one) => one.stats && binsOf(one.stats).length && one.stats.min !== null);
  if (known.length === 0) return h('p', {class: 'none'}, 'There is no histogram.');
  const low = Math.min(...known.map((one) => one.stats.min)),
    high = Math.max(...known.map((one) => one.stats.max));
  const range = high - low || 1;
  // Two sides have bins of two widths, so what is compared is how dense values are.
  const densities = known.map((one) => {
    const bins = binsOf(one.stats),
      total = bins.reduce((a, b) => a + b, 0) || 1,
      step = (one.stats.max - one.stats.min || 1) / bins.length;
    return bins.map((count) => count / total / step);
  });
  const most = Math.max(...densities.flat(), 1e-300);
  const least = Math.min(...densities.flat().filter((d) => d > 0));
  const y = (density) => {
    if (density <= 0) return base;
    const share = isLog ? 0.04 + 0.96 * (Math.log(density / least) / (Math.log(most / least) || 1)) : density / most;
    return base - (base - 8) * share;
  };
  const drawing = svg('svg', {
    'viewBox': `0 0 ${width} ${height}`,
    'class': 'histogram',
    'role': 'img',
    'aria-label': `Histogram from ${numberText(low)} to ${numberText(high)}`,
  });
  known.forEach((one, k) => {
    const bins = densities[k],
      step = (one.stats.max - one.stats.min || 1) / bins.length;
    let path = '';
    bins.forEach((density, i) => {
      const x0 = (width * (one.stats.min + i * step - low)) / range,
        x1 = (width * (one.stats.min + (i + 1) * step - low)) / range;
      path += `${i ? 'L' : 'M'}${x0.toFixed(1)} ${i ? y(density).toFixed(1) : base}`;
      if (!i) path += `L${x0.toFixed(1)} ${y(density).toFixed(1)}`;
      path += `L${x1.toFixed(1)} ${y(density).toFixed(1)}`;
    });
    path += `L${((width * (one.stats.max - low)) / range).toFixed(1)} ${base}Z`;
    drawing.append(svg('path', {d: path, class: 'bins ' + (one.className || '')}));
  });
  drawing.append(svg('line', {x1: 0, x2: width, y1: base + 0.5, y2: base + 0.5, class: 'axis'}));
  if (low < 0 && high > 0) {
    const zero = (width * -low) / range;
    drawing.append(svg('line', {x1: zero, x2: zero, y1: base, y2: base + 4, class: 'axis'}));
    if (zero > 60 && zero < width - 60) drawing.append(svg('text', {'x': zero, 'y': height - 3, 'text-anchor': 'middle'}, '0'));
  }
  drawing.append(
    svg('text', {x: 0, y: height - 3}, numberText(low)),
    svg('text', {'x': width, 'y': height - 3, 'text-anchor': 'end'}, numberText(high)),
  );
  drawing.addEventListener('pointermove', (event) => {
    const box = drawing.getBoundingClientRect();
    const value = low + (range * (event.clientX - box.left)) / box.width;
    const rows = known.map((one) => {
      const bins = binsOf(one.stats),
        at = Math.floor((bins.length * (value - one.stats.min)) / (one.stats.max - one.stats.min || 1));
      const count = bins[at];
      return [
        one.label || 'here',
        count === undefined ? '0' : one.stats.histogram ? countText(count) : shareText(count / bins.reduce((a, b) => a + b, 0)),
      ];
    });
    showTip(event.clientX, event.clientY, 'near ' + numberText(value), rows);
  });
  drawing.addEventListener('pointerleave', hideTip);
  return drawing;
}
