-- What lenses and user commands do.

local M = {}

-- What the server asks of a person's terminal.
local function terminal(words, folder)
  vim.cmd("botright new")
  local all = vim.list_extend({ require("swarmc").command()[1] }, words)
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

local function show_references(lens, context)
  local client = vim.lsp.get_client_by_id(context.client_id)
  vim.fn.setqflist(vim.lsp.util.locations_to_items(lens.arguments[3], client.offset_encoding or "utf-16"))
  vim.cmd("copen")
end

function M.register()
  vim.lsp.commands["swarmc.run"] = on_target("run", "--pipeline")
  vim.lsp.commands["swarmc.test"] = on_target("test", "--filter")
  vim.lsp.commands["swarmc.inspect"] = function(lens)
    terminal({ "inspect", lens.arguments[1].run })
  end
  vim.lsp.commands["swarmc.plan"] = function(lens)
    ask("swarmc.plan", lens.arguments[1], "text")
  end
  vim.lsp.commands["swarmc.references"] = show_references
  vim.api.nvim_create_user_command("SwarmcPlan", function()
    ask("swarmc.plan", { uri = vim.uri_from_bufnr(0) }, "text")
  end, { desc = "Show the plan of this spec" })
  vim.api.nvim_create_user_command("SwarmcPrompt", function()
    local place = vim.lsp.util.make_position_params(0, "utf-16")
    ask("swarmc.prompt", { uri = place.textDocument.uri, position = place.position }, "markdown")
  end, { desc = "Show the prompt of the task at the cursor" })
  vim.api.nvim_create_user_command("SwarmcExplain", function(arguments)
    ask("swarmc.explain", arguments.args, "markdown")
  end, { nargs = 1, desc = "Explain a rule" })
end

return M
