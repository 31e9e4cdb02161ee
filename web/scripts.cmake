# The scripts of the page, in the order in which they are joined: a file uses those above it while it is loaded, and any
# file later.
set(page_scripts
  dom.js text.js scale.js store.js metrics.js source.js state.js tree.js
  treemap.js map.js map_input.js table.js layers.js histogram.js heat.js spectrum.js tensor.js shards.js file.js difference.js
  adapter.js frame.js main.js)
