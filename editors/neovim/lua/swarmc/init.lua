-- swarmc in Neovim 0.7 and newer: see `:help swarmc`.

local M = {}

-- Specs, and whatever may be a prompt: which of them is ours, the server knows.
local filetypes = { "kdl", "markdown", "text" }
local markers = { "swarmc.kdl", ".git" }

-- The command that starts the server.
function M.command()
  return vim.g.swarmc_command or { "swarmc", "lsp" }
end

local function on_attach(client, buffer)
  vim.bo[buffer].omnifunc = "v:lua.vim.lsp.omnifunc"
  -- From 0.11 on, completion comes while typing.
  if vim.lsp.completion then
    vim.lsp.completion.enable(true, client.id, buffer, { autotrigger = true })
  end
end

-- What starts the client.
function M.config()
  local settings = vim.g.swarmc_settings or {}
  return {
    cmd = M.command(),
    filetypes = filetypes,
    root_markers = markers,
    init_options = settings,
    settings = { swarmc = settings },
    on_attach = on_attach,
  }
end

-- The nearest folder with one of the markers, else the file's own.
local function root(file)
  local folder = vim.fn.fnamemodify(file, ":p:h")
  local at = folder
  while true do
    for _, marker in ipairs(markers) do
      if vim.loop.fs_stat(at .. "/" .. marker) then
        return at
      end
    end
    local above = vim.fn.fnamemodify(at, ":h")
    if above == at then
      return folder
    end
    at = above
  end
end

-- Before 0.8 there is no vim.lsp.start: one client a folder is kept here.
local clients = {}

-- Starts the client for a buffer, before Neovim 0.11.
local function start(buffer)
  local file = vim.api.nvim_buf_get_name(buffer)
  if file == "" or vim.bo[buffer].buftype ~= "" then
    return
  end
  local folder = root(file)
  local config = M.config()
  config.name = "swarmc"
  config.root_dir = folder
  config.workspace_folders = { { uri = vim.uri_from_fname(folder), name = vim.fn.fnamemodify(folder, ":t") } }
  if vim.lsp.start then
    vim.lsp.start(config, { bufnr = buffer })
    return
  end
  local running = clients[folder] and vim.lsp.get_client_by_id(clients[folder])
  if not running or running.is_stopped() then
    clients[folder] = vim.lsp.start_client(config)
  end
  vim.lsp.buf_attach_client(buffer, clients[folder])
end

local function warn_missing()
  local message = "swarmc: `%s` is not installed: put it on PATH, or name it in `vim.g.swarmc_command`; see :checkhealth swarmc"
  vim.notify(message:format(M.command()[1]), vim.log.levels.WARN)
end

-- Starts the server in specs and prompts from now on. `options.command` and `options.settings` are what
-- `vim.g.swarmc_command` and `vim.g.swarmc_settings` are.
function M.setup(options)
  options = options or {}
  vim.g.loaded_swarmc = true
  vim.g.swarmc_command = options.command or vim.g.swarmc_command
  vim.g.swarmc_settings = options.settings or vim.g.swarmc_settings
  local group = vim.api.nvim_create_augroup("swarmc", {})
  vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, {
    group = group,
    pattern = "*.kdl",
    callback = function()
      vim.bo.filetype = "kdl"
    end,
  })
  if vim.fn.executable(M.command()[1]) == 0 then
    vim.api.nvim_create_autocmd("FileType", { group = group, pattern = "kdl", once = true, callback = warn_missing })
    return
  end
  require("swarmc.commands").register()
  if vim.lsp.config and vim.lsp.enable then
    vim.lsp.config("swarmc", M.config())
    vim.lsp.enable("swarmc")
    return
  end
  vim.api.nvim_create_autocmd("FileType", {
    group = group,
    pattern = filetypes,
    callback = function(event)
      start(event.buf)
    end,
  })
end

return M
