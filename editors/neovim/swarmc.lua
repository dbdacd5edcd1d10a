-- swarmc in Neovim 0.7 and newer. Put this file into ~/.config/nvim/plugin/, and that is all.
--
-- Before it is read (in init.lua), `vim.g.swarmc_command = { "/path/to/swarmc", "lsp" }` names another program, and
-- `vim.g.swarmc_settings = { inlayHints = false, codeLens = true }` says what is shown.

if vim.g.loaded_swarmc then
  return
end
vim.g.loaded_swarmc = true

local command = vim.g.swarmc_command or { "swarmc", "lsp" }
local settings = vim.g.swarmc_settings or {}
-- Specs, and whatever may be a prompt: which of them is ours, the server knows.
local filetypes = { "kdl", "markdown", "text" }
local group = vim.api.nvim_create_augroup("swarmc", {})

vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, {
  group = group,
  pattern = "*.kdl",
  callback = function()
    vim.bo.filetype = "kdl"
    vim.bo.commentstring = "// %s"
  end,
})

if vim.fn.executable(command[1]) == 0 then
  vim.api.nvim_create_autocmd("FileType", {
    group = group,
    pattern = "kdl",
    once = true,
    callback = function()
      local message = "swarmc: `%s` is not installed: put it on PATH, or name it in `vim.g.swarmc_command`"
      vim.notify(message:format(command[1]), vim.log.levels.WARN)
    end,
  })
  return
end

-- What the server asks of a person's terminal.
local function terminal(words, folder)
  vim.cmd("botright new")
  local all = vim.list_extend({ command[1] }, words)
  vim.fn.termopen(all, { cwd = folder })
end

local function on_target(subcommand, flag)
  return function(lens)
    local target = lens.arguments[1]
    vim.cmd("silent! wall")
    terminal({ subcommand, target.path, flag, target.name }, target.workspace)
  end
end

local function show(text, filetype)
  vim.cmd("botright new")
  vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(text, "\n"))
  vim.bo.buftype, vim.bo.bufhidden, vim.bo.filetype = "nofile", "wipe", filetype
end

-- Asks the server for a text, and shows it.
local function ask(name, argument, filetype)
  local request = { command = name, arguments = { argument } }
  vim.lsp.buf_request(0, "workspace/executeCommand", request, function(failure, text)
    if failure then
      vim.notify("swarmc: " .. failure.message, vim.log.levels.ERROR)
    elseif type(text) == "string" then
      show(text, filetype)
    end
  end)
end

vim.lsp.commands["swarmc.run"] = on_target("run", "--pipeline")
vim.lsp.commands["swarmc.test"] = on_target("test", "--filter")
vim.lsp.commands["swarmc.inspect"] = function(lens)
  terminal({ "inspect", lens.arguments[1].run })
end
vim.lsp.commands["swarmc.plan"] = function(lens)
  ask("swarmc.plan", lens.arguments[1], "text")
end
vim.lsp.commands["swarmc.references"] = function(lens, context)
  local client = vim.lsp.get_client_by_id(context.client_id)
  vim.fn.setqflist(vim.lsp.util.locations_to_items(lens.arguments[3], client.offset_encoding or "utf-16"))
  vim.cmd("copen")
end

-- :SwarmcPlan shows the plan of this spec, :SwarmcPrompt the prompt of the task at the cursor, :SwarmcExplain SW201 a rule.
vim.api.nvim_create_user_command("SwarmcPlan", function()
  ask("swarmc.plan", { uri = vim.uri_from_bufnr(0) }, "text")
end, {})
vim.api.nvim_create_user_command("SwarmcPrompt", function()
  local place = vim.lsp.util.make_position_params(0, "utf-16")
  ask("swarmc.prompt", { uri = place.textDocument.uri, position = place.position }, "markdown")
end, {})
vim.api.nvim_create_user_command("SwarmcExplain", function(arguments)
  ask("swarmc.explain", arguments.args, "markdown")
end, { nargs = 1 })

local function on_attach(client, buffer)
  vim.bo[buffer].omnifunc = "v:lua.vim.lsp.omnifunc"
  -- From 0.11 on, completion comes while typing.
  if vim.lsp.completion then
    vim.lsp.completion.enable(true, client.id, buffer, { autotrigger = true })
  end
end

local markers = { "swarmc.kdl", ".git" }

if vim.lsp.config and vim.lsp.enable then
  vim.lsp.config("swarmc", {
    cmd = command,
    filetypes = filetypes,
    root_markers = markers,
    init_options = settings,
    settings = { swarmc = settings },
    on_attach = on_attach,
  })
  vim.lsp.enable("swarmc")
  return
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

vim.api.nvim_create_autocmd("FileType", {
  group = group,
  pattern = filetypes,
  callback = function(event)
    local file = vim.api.nvim_buf_get_name(event.buf)
    if file == "" or vim.bo[event.buf].buftype ~= "" then
      return
    end
    local folder = root(file)
    local config = {
      name = "swarmc",
      cmd = command,
      root_dir = folder,
      workspace_folders = { { uri = vim.uri_from_fname(folder), name = vim.fn.fnamemodify(folder, ":t") } },
      init_options = settings,
      settings = { swarmc = settings },
      on_attach = on_attach,
    }
    if vim.lsp.start then
      vim.lsp.start(config, { bufnr = event.buf })
    else
      local running = clients[folder] and vim.lsp.get_client_by_id(clients[folder])
      if not running or running.is_stopped() then
        clients[folder] = vim.lsp.start_client(config)
      end
      vim.lsp.buf_attach_client(event.buf, clients[folder])
    end
  end,
})
