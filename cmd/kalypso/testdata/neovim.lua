-- What somebody does with a platform in Neovim, without a screen: cart.cue is open.
local patience = 300000 -- milliseconds, for what comes when it comes

local function await(what, condition)
  if not vim.wait(patience, condition, 20) then
    error("there is no " .. what)
  end
end

local function say(text)
  io.stdout:write(text, "\n")
end

-- ask asks the server about where the cursor is.
local function ask(method, params)
  params = vim.tbl_extend("force", vim.lsp.util.make_position_params(), params or {})
  local answers, failed = vim.lsp.buf_request_sync(0, method, params, patience)
  for _, answer in pairs(answers or {}) do
    if answer.result then
      return answer.result
    end
    failed = vim.inspect(answer)
  end
  error(method .. ": " .. tostring(failed))
end

local function typed(line, text)
  vim.api.nvim_buf_set_lines(0, line, line, true, { text })
end

local function problems(text)
  local found = {}
  for _, d in ipairs(vim.diagnostic.get(0)) do
    table.insert(found, (d.lnum + 1) .. ":" .. (d.col + 1) .. " " .. d.message:gsub("\n", " "))
  end
  return #found > 0 and table.concat(found, "\n") or nil
end

local function go()
  await("server", function() return next(vim.lsp.buf_get_clients(0)) ~= nil end)

  typed(4, "\t")
  vim.api.nvim_win_set_cursor(0, { 5, 1 })
  local labels = {}
  for _, item in ipairs(ask("textDocument/completion").items) do
    table.insert(labels, item.label)
  end
  say("completion: " .. table.concat(labels, " "))

  vim.api.nvim_win_set_cursor(0, { 4, 2 })
  say("hover: " .. ask("textDocument/hover").contents.value)

  typed(5, "\tlabel: {}")
  await("problem", function() return (problems() or ""):match("label") end)
  say("problems: " .. problems())

  vim.api.nvim_buf_set_lines(0, 5, 6, true, { "\trequires:   {A: string}" })
  await("end of the problem", function() return not (problems() or ""):match("label") end)

  local edits = ask("textDocument/formatting", { options = { tabSize = 4, insertSpaces = false } })
  vim.lsp.util.apply_text_edits(edits, 0, "utf-16")
  say(table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), "\n"))
end

local ok, err = pcall(go)
if not ok then
  say(tostring(err))
  vim.cmd("cquit!")
end
