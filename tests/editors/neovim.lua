-- Types in a Neovim as a person does, and looks at what is shown: one Neovim drives another.
--
-- Run by tests/editors.rs: `nvim --headless -u NONE -c "luafile …"` with SWARMC (the program), SITE (a folder with the plugin
-- as a package) and WORKSPACE (a copy of specs/feature). Each check prints a line; the first that fails ends it.

local workspace = assert(vim.env.WORKSPACE)
local child = vim.fn.jobstart({ vim.v.progpath, "--embed", "--headless", "-u", "NONE", "-i", "NONE", "-n" }, {
  rpc = true,
  cwd = workspace,
})
assert(child > 0, "a second Neovim starts")

local function lua(code, ...)
  return vim.rpcrequest(child, "nvim_exec_lua", code, { ... })
end

local function type_keys(keys)
  vim.rpcrequest(child, "nvim_input", keys)
end

local function fail(text)
  io.stderr:write("not ok - " .. text .. "\n")
  local state = lua([[
    return vim.inspect({ mode = vim.api.nvim_get_mode(), file = vim.api.nvim_buf_get_name(0),
      lines = vim.api.nvim_buf_get_lines(0, 0, -1, false), messages = vim.api.nvim_exec("messages", true),
      diagnostics = vim.diagnostic.get(nil), completion = vim.fn.complete_info({ "items" }) })
  ]])
  io.stderr:write(state .. "\n")
  vim.cmd("cquit 1")
end

-- Waits until the other Neovim says so; what it says is given back.
local function eventually(what, code, ...)
  local arguments = { ... }
  local found
  local held = vim.wait(30000, function()
    found = lua(code, unpack(arguments))
    return found and found ~= vim.NIL
  end, 20)
  if not held then
    fail(what)
  end
  io.stdout:write("ok - " .. what .. "\n")
  return found
end

local DIAGNOSED = [[
  for _, diagnostic in ipairs(vim.diagnostic.get(0)) do
    if diagnostic.message:find(..., 1, true) then
      return diagnostic.lnum .. ":" .. diagnostic.col
    end
  end
]]

local NO_DIAGNOSTICS = "return #vim.diagnostic.get(0) == 0"

local HAS_LINE = "return vim.tbl_contains(vim.api.nvim_buf_get_lines(0, 0, -1, false), ...)"

local function open(file)
  type_keys("<Esc>:edit " .. file .. "<CR>")
  eventually(file .. " is open, with the server", [[
    local file = ...
    return vim.api.nvim_buf_get_name(0):sub(-#file) == file and #vim.lsp.buf_get_clients(0) == 1
      and vim.lsp.buf_get_clients(0)[next(vim.lsp.buf_get_clients(0))].initialized
  ]], file)
end

lua([[
  local program, site = ...
  vim.o.hidden, vim.o.swapfile = true, false
  vim.g.swarmc_command = { program, "lsp" }
  vim.cmd("filetype plugin on")
  vim.opt.packpath:prepend(site)
  vim.cmd("packadd swarmc")
]], assert(vim.env.SWARMC), assert(vim.env.SITE))

-- Diagnostics as one types, in a prompt.
open("prompts/coder.md")
type_keys("Gohand it to <lt><lt>output:plannr>><Esc>")
local at = eventually("a wrong name is told while the prompt is written", DIAGNOSED, "plannr")
local line = lua("return vim.fn.line('.') - 1")
if at ~= line .. ":20" then
  fail("it is told where the name stands: " .. at)
end

-- A code action that mends it, chosen as a person would.
lua([[vim.ui.select = function(items, options, chosen)
  for index, item in ipairs(items) do
    local title = (options.format_item or tostring)(item)
    if title:find("planner", 1, true) then
      return chosen(item, index)
    end
  end
end]])
type_keys("0fr:lua vim.lsp.buf.code_action()<CR>")
eventually("a code action mends it", HAS_LINE, "hand it to <<output:planner>>")
eventually("and then nothing is wrong", NO_DIAGNOSTICS)

-- Completion inside a directive that is not finished.
type_keys("<Esc>Go<lt><lt>output:<C-x><C-o>")
eventually("inside `<<output:` the step before this one is offered", [[
  for _, item in ipairs(vim.fn.complete_info({ "items" }).items) do
    if item.word:find("planner", 1, true) then
      return true
    end
  end
]])
local words = lua("return vim.tbl_map(function(item) return item.abbr end, vim.fn.complete_info({ 'items' }).items)")
if not (words[1] or ""):find("planner", 1, true) then
  fail("it is the first: " .. vim.inspect(words))
end
type_keys("<C-y><Esc>")
eventually("and taken, with the end of the directive", HAS_LINE, "<<output:planner>>")
eventually("which is right", NO_DIAGNOSTICS)

-- Rename in the spec; the prompts follow.
open("feature.kdl")
eventually("the spec is right", NO_DIAGNOSTICS)
type_keys("/task planner<CR>w:lua vim.lsp.buf.rename('thinker')<CR>")
eventually("a task is renamed in the spec", HAS_LINE, "    task thinker agent=planner {")
open("prompts/coder.md")
eventually("and in a prompt", HAS_LINE, "hand it to <<output:thinker>>")
eventually("and all is well there", NO_DIAGNOSTICS)

-- Formatting.
open("feature.kdl")
type_keys("/task thinker<CR>0dw")
-- Asked for again where the text has changed since: then Neovim drops the answer.
eventually("formatting puts the line back", [[
  (vim.lsp.buf.format or vim.lsp.buf.formatting_sync)()
]] .. HAS_LINE, "    task thinker agent=planner {")

-- A broken spec is told as well, and what is mended is well again.
type_keys("/retry 1<CR>wC\"open<Esc>")
eventually("an open string is told", [[return #vim.diagnostic.get(0) > 0]])
type_keys("u")
eventually("and forgotten once it is gone", NO_DIAGNOSTICS)

-- What stands around it.
eventually("comments are those of KDL", [[return vim.bo.commentstring == "// %s"]])
lua("vim.cmd('helptags ALL | help swarmc-options')")
eventually("the help has its tags", [[return vim.api.nvim_get_current_line():find("*swarmc-options*", 1, true) ~= nil]])
lua("vim.cmd('checkhealth swarmc')")
eventually("the health check finds the program and the server", [[
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
  return text:find(": swarmc %d+%.%d+%.%d+") and text:find("the server runs in", 1, true) and not text:find("ERROR")
]])
eventually("queries lie where tree-sitter looks for them", [[
  local found = vim.api.nvim_get_runtime_file("queries/kdl/injections.scm", true)
  return #found > 0 and #vim.api.nvim_get_runtime_file("queries/markdown/injections.scm", true) > 0
]])

-- A setting that comes later counts, and a program that is not there is told.
lua([[require("swarmc").setup({ settings = { codeLens = false } })]])
eventually("options of setup count", [[
  return vim.g.swarmc_settings.codeLens == false and require("swarmc").config().settings.swarmc.codeLens == false
]])
lua([[require("swarmc").setup({ command = { "/nowhere/swarmc", "lsp" } })]])
lua("vim.cmd('checkhealth swarmc')")
eventually("the health check says what to type where the program is missing", [[
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
  return text:find("`/nowhere/swarmc` is not installed", 1, true) and text:find("uv tool install swarmc", 1, true)
]])

vim.rpcnotify(child, "nvim_command", "quitall!")
local code = vim.fn.jobwait({ child }, 10000)[1]
if code ~= 0 then
  io.stderr:write("not ok - the Neovim with the server ends: " .. code .. "\n")
  vim.cmd("cquit 1")
end
io.stdout:write("ok - the Neovim with the server ends\n")
vim.cmd("quitall!")
