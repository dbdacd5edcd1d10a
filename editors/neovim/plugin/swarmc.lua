-- Plugin managers and `packadd` read this: it starts the server in specs and prompts.
if not vim.g.loaded_swarmc then
  require("swarmc").setup()
end
