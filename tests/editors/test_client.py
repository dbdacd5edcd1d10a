"""The server against pytest-lsp's client, with the capabilities of Visual Studio Code.

Every request that the server announces is sent, in a spec and in a prompt; the answers are read by lsprotocol, which
refuses what has not the form that the protocol says, and by pytest-lsp's checks against what the client can do. Run by
tests/editors.rs with SWARMC (the program) and WORKSPACE (a copy of specs/feature).
"""

import asyncio
import os
import pathlib

import pytest
import pytest_lsp
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

WORKSPACE = pathlib.Path(os.environ["WORKSPACE"])
SPEC = WORKSPACE / "feature.kdl"
PROMPT = WORKSPACE / "prompts" / "coder.md"


@pytest_lsp.fixture(scope="module", config=ClientServerConfig(server_command=[os.environ["SWARMC"], "lsp"]))
async def client(lsp_client: LanguageClient):
    registered = asyncio.get_running_loop().create_future()

    # Visual Studio Code says that files can be watched, so the server asks for that.
    @lsp_client.feature(lsp.CLIENT_REGISTER_CAPABILITY)
    def register(params: lsp.RegistrationParams):
        registered.set_result([registration.method for registration in params.registrations])

    result = await lsp_client.initialize_session(
        lsp.InitializeParams(
            capabilities=client_capabilities("visual-studio-code"),
            client_info=lsp.ClientInfo(name="Visual Studio Code"),
            workspace_folders=[lsp.WorkspaceFolder(uri=WORKSPACE.as_uri(), name="feature")],
        )
    )
    lsp_client.announced = result.capabilities
    for path, language in [(SPEC, "kdl"), (PROMPT, "markdown")]:
        item = lsp.TextDocumentItem(uri=path.as_uri(), language_id=language, version=1, text=path.read_text())
        lsp_client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))
    assert await asyncio.wait_for(registered, 30) == [lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES]
    await settled(lsp_client)
    yield
    await lsp_client.shutdown_session()


async def settled(client):
    """Asks until the server has found its specs: what it is asked meanwhile may be about an older state."""
    for _ in range(100):
        try:
            return await client.text_document_hover_async(lsp.HoverParams(**point(*TASK)))
        except JsonRpcException as error:
            assert error.code == lsp.LSPErrorCodes.ContentModified
    raise AssertionError("the server never settles")


def document(path):
    return lsp.TextDocumentIdentifier(uri=path.as_uri())


def at(path, text, after=""):
    """The place of a text in a file, behind its beginning `after`."""
    lines = path.read_text().split("\n")
    line = next(index for index, line in enumerate(lines) if text in line)
    return lsp.Position(line=line, character=lines[line].index(text) + len(after))


def point(path, text, after=""):
    return {"text_document": document(path), "position": at(path, text, after)}


def whole(path):
    lines = path.read_text().split("\n")
    return lsp.Range(start=lsp.Position(0, 0), end=lsp.Position(len(lines) - 1, 0))


# A task where the spec declares it, and where a prompt reads it.
TASK = (SPEC, "task planner", "task pl")
READ = (PROMPT, "<<output:planner>>", "<<output:pl")
PLACES = [TASK, READ]


async def completion(client):
    for place in [(SPEC, "    timeout", "    "), (PROMPT, "<<output:planner>>", "<<output:")]:
        answer = await client.text_document_completion_async(lsp.CompletionParams(**point(*place)))
        items = answer.items if isinstance(answer, lsp.CompletionList) else answer
        assert items
    assert items[0].label == "planner"


async def completion_resolve(client):
    answer = await client.text_document_completion_async(lsp.CompletionParams(**point(*READ)))
    items = answer.items if isinstance(answer, lsp.CompletionList) else answer
    assert (await client.completion_item_resolve_async(items[0])).label == items[0].label


async def signature_help(client):
    await client.text_document_signature_help_async(lsp.SignatureHelpParams(**point(*READ)))


async def hover(client):
    for place in PLACES:
        answer = await client.text_document_hover_async(lsp.HoverParams(**point(*place)))
        assert "planner" in answer.contents.value


async def definition(client):
    answer = await client.text_document_definition_async(lsp.DefinitionParams(**point(*READ)))
    found = answer[0] if isinstance(answer, list) else answer
    assert getattr(found, "target_uri", None) or found.uri == SPEC.as_uri()


async def type_definition(client):
    for place in PLACES:
        await client.text_document_type_definition_async(lsp.TypeDefinitionParams(**point(*place)))


async def references(client):
    context = lsp.ReferenceContext(include_declaration=True)
    for place in PLACES:
        answer = await client.text_document_references_async(lsp.ReferenceParams(context=context, **point(*place)))
        assert {SPEC.as_uri(), PROMPT.as_uri()} <= {place.uri for place in answer}


async def document_highlight(client):
    for place in PLACES:
        assert await client.text_document_document_highlight_async(lsp.DocumentHighlightParams(**point(*place)))


async def rename(client):
    for place in PLACES:
        assert await client.text_document_prepare_rename_async(lsp.PrepareRenameParams(**point(*place)))
        edit = await client.text_document_rename_async(lsp.RenameParams(new_name="thinker", **point(*place)))
        changed = set(edit.changes or {}) | {change.text_document.uri for change in edit.document_changes or []}
        assert {SPEC.as_uri(), PROMPT.as_uri()} <= changed


async def code_action(client):
    context = lsp.CodeActionContext(diagnostics=[])
    for path in [SPEC, PROMPT]:
        params = lsp.CodeActionParams(text_document=document(path), range=whole(path), context=context)
        assert await client.text_document_code_action_async(params) is not None


async def formatting(client):
    options = lsp.FormattingOptions(tab_size=4, insert_spaces=True)
    await client.text_document_formatting_async(lsp.DocumentFormattingParams(document(SPEC), options))


async def range_formatting(client):
    options = lsp.FormattingOptions(tab_size=4, insert_spaces=True)
    params = lsp.DocumentRangeFormattingParams(document(SPEC), whole(SPEC), options)
    await client.text_document_range_formatting_async(params)


async def on_type_formatting(client):
    options = lsp.FormattingOptions(tab_size=4, insert_spaces=True)
    place = at(SPEC, 'retry 1 backoff="5s"')
    end = lsp.Position(place.line + 1, 5)
    params = lsp.DocumentOnTypeFormattingParams(document(SPEC), end, "}", options)
    await client.text_document_on_type_formatting_async(params)


async def inlay_hints(client):
    for path in [SPEC, PROMPT]:
        params = lsp.InlayHintParams(text_document=document(path), range=whole(path))
        answer = await client.text_document_inlay_hint_async(params)
    assert answer is not None


async def code_lens(client):
    answer = await client.text_document_code_lens_async(lsp.CodeLensParams(document(SPEC)))
    resolved = [await client.code_lens_resolve_async(lens) if lens.command is None else lens for lens in answer]
    assert {"swarmc.run", "swarmc.references"} <= {lens.command.command for lens in resolved}


async def inline_values(client):
    stopped = lsp.InlineValueContext(frame_id=0, stopped_location=whole(SPEC))
    for path in [SPEC, PROMPT]:
        params = lsp.InlineValueParams(document(path), whole(path), stopped)
        await client.text_document_inline_value_async(params)


async def document_symbols(client):
    for path in [SPEC, PROMPT]:
        await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document(path)))
    answer = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document(SPEC)))
    assert "planner" in repr(answer)


async def workspace_symbols(client):
    answer = await client.workspace_symbol_async(lsp.WorkspaceSymbolParams(query="plann"))
    assert any("planner" in symbol.name for symbol in answer)


async def folding_ranges(client):
    assert await client.text_document_folding_range_async(lsp.FoldingRangeParams(document(SPEC)))


async def selection_ranges(client):
    for place in PLACES:
        path, *text = place
        params = lsp.SelectionRangeParams(document(path), [at(path, *text)])
        assert (await client.text_document_selection_range_async(params))[0].parent is not None


async def document_links(client):
    for path in [SPEC, PROMPT]:
        assert await client.text_document_document_link_async(lsp.DocumentLinkParams(document(path)))


async def linked_editing(client):
    for place in PLACES:
        await client.text_document_linked_editing_range_async(lsp.LinkedEditingRangeParams(**point(*place)))


async def call_hierarchy(client):
    items = await client.text_document_prepare_call_hierarchy_async(lsp.CallHierarchyPrepareParams(**point(*TASK)))
    outgoing = await client.call_hierarchy_outgoing_calls_async(lsp.CallHierarchyOutgoingCallsParams(items[0]))
    assert "coder" in [call.to.name for call in outgoing]
    reader = next(call.to for call in outgoing if call.to.name == "coder")
    incoming = await client.call_hierarchy_incoming_calls_async(lsp.CallHierarchyIncomingCallsParams(reader))
    assert "planner" in [call.from_.name for call in incoming]


async def semantic_tokens(client):
    for path in [SPEC, PROMPT]:
        full = await client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(document(path)))
        assert full.data and len(full.data) % 5 == 0
        params = lsp.SemanticTokensDeltaParams(document(path), full.result_id)
        delta = await client.text_document_semantic_tokens_full_delta_async(params)
        assert isinstance(delta, lsp.SemanticTokensDelta) and not delta.edits
        await client.text_document_semantic_tokens_range_async(lsp.SemanticTokensRangeParams(document(path), whole(path)))


async def commands(client):
    for command in client.announced.execute_command_provider.commands:
        argument = {
            "swarmc.explain": "SW201",
            "swarmc.prompt": {"uri": SPEC.as_uri(), "name": "planner"},
        }.get(command, {"uri": SPEC.as_uri()})
        answer = await client.workspace_execute_command_async(lsp.ExecuteCommandParams(command, arguments=[argument]))
        assert answer


# What asks for each thing that a server can announce.
REQUESTS = {
    "completion_provider": completion,
    "signature_help_provider": signature_help,
    "hover_provider": hover,
    "definition_provider": definition,
    "type_definition_provider": type_definition,
    "references_provider": references,
    "document_highlight_provider": document_highlight,
    "rename_provider": rename,
    "code_action_provider": code_action,
    "document_formatting_provider": formatting,
    "document_range_formatting_provider": range_formatting,
    "document_on_type_formatting_provider": on_type_formatting,
    "inlay_hint_provider": inlay_hints,
    "code_lens_provider": code_lens,
    "inline_value_provider": inline_values,
    "document_symbol_provider": document_symbols,
    "workspace_symbol_provider": workspace_symbols,
    "folding_range_provider": folding_ranges,
    "selection_range_provider": selection_ranges,
    "document_link_provider": document_links,
    "linked_editing_range_provider": linked_editing,
    "call_hierarchy_provider": call_hierarchy,
    "semantic_tokens_provider": semantic_tokens,
    "execute_command_provider": commands,
}

# What is no request.
OTHER = {"position_encoding", "text_document_sync", "diagnostic_provider", "workspace", "experimental"}


def announced(capabilities):
    names = [name for name in dir(capabilities) if not name.startswith("_")]
    return {name for name in names if getattr(capabilities, name) not in (None, False)} - OTHER


@pytest.mark.asyncio(loop_scope="module")
async def test_all_that_is_announced_is_asked_for(client: LanguageClient):
    assert announced(client.announced) - REQUESTS.keys() == set()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", REQUESTS)
async def test_request(client: LanguageClient, name: str):
    if name in announced(client.announced):
        await asyncio.wait_for(REQUESTS[name](client), 30)
        resolves = getattr(getattr(client.announced, name), "resolve_provider", None)
        if name == "completion_provider" and resolves:
            await completion_resolve(client)


@pytest.mark.asyncio(loop_scope="module")
async def test_diagnostics_follow_the_text(client: LanguageClient):
    text = PROMPT.read_text() + "\n<<output:plannr>> 🙂 <<output:codr>>\n"
    params = lsp.DidChangeTextDocumentParams(
        text_document=lsp.VersionedTextDocumentIdentifier(uri=PROMPT.as_uri(), version=2),
        content_changes=[lsp.TextDocumentContentChangeWholeDocument(text=text)],
    )
    client.text_document_did_change(params)
    while len(client.diagnostics.get(PROMPT.as_uri(), [])) < 2:
        told = client.protocol.wait_for_notification_async(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        await asyncio.wait_for(told, 30)
    first, second = client.diagnostics[PROMPT.as_uri()]
    # In UTF-16, as this client counts: the face is two.
    assert (first.range.start.character, first.range.end.character) == (9, 15)
    assert (second.range.start.character, second.range.end.character) == (30, 34)
    assert first.code.startswith("SW") and first.source == "swarmc"
    action = lsp.CodeActionParams(document(PROMPT), first.range, lsp.CodeActionContext(diagnostics=[first]))
    titles = [action.title for action in await client.text_document_code_action_async(action)]
    assert any("planner" in title for title in titles), titles
