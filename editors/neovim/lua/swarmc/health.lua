-- `:checkhealth swarmc`.

local M = {}

-- Before 0.10 the functions have longer names.
local health = vim.health or require("health")
local start = health.start or health.report_start
local ok = health.ok or health.report_ok
local warn = health.warn or health.report_warn
local fail = health.error or health.report_error

local function check_program()
  local program = require("swarmc").command()[1]
  if vim.fn.executable(program) == 0 then
    fail(("`%s` is not installed"):format(program), {
      "type `uv tool install swarmc` or `npm install --global swarmc`",
      'or name it: `vim.g.swarmc_command = { "/path/to/swarmc", "lsp" }`',
    })
    return
  end
  local version = vim.trim(vim.fn.system({ program, "--version" }))
  if vim.v.shell_error == 0 then
    ok(("%s: %s"):format(vim.fn.exepath(program), version))
  else
    fail(("`%s --version` failed: %s"):format(program, version), { "install it again" })
  end
end

local function check_clients()
  local list = vim.lsp.get_clients or vim.lsp.get_active_clients
  local running = vim.tbl_filter(function(client)
    return client.name == "swarmc"
  end, list())
  if #running == 0 then
    warn("the server does not run", { "open a spec, a file that ends in `.kdl`" })
  end
  for _, client in ipairs(running) do
    ok("the server runs in " .. tostring(client.config.root_dir))
  end
end

local function has_parser(language)
  return #vim.api.nvim_get_runtime_file("parser/" .. language .. ".*", false) > 0
end

-- Colors of expressions need parsers of others; all else does without.
local function check_parsers()
  for _, language in ipairs({ "kdl", "jinja" }) do
    if has_parser(language) then
      ok("tree-sitter has " .. language)
    else
      warn("tree-sitter has no parser for " .. language, { "with nvim-treesitter, type `:TSInstall " .. language .. "`" })
    end
  end
end

function M.check()
  start("swarmc")
  check_program()
  check_clients()
  start("swarmc: colors of expressions")
  check_parsers()
end

return M
