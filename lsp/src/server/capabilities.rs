//! What the editor can do, and what it may ask for.

use std::path::PathBuf;

use gen_lsp_types as lsp;

use super::convert::{self, Encoding};
use super::handlers::commands::COMMANDS;

/// What an editor has said about itself.
pub(super) struct Client {
    /// What its positions count.
    pub(super) encoding: Encoding,
    /// Its folders.
    pub(super) folders: Vec<PathBuf>,
    /// Whether it can watch files for us.
    pub(super) watches: bool,
    /// Whether what it watches can count from a folder.
    pub(super) relative: bool,
    /// Whether it asks for problems rather than being told, and again when told to: problems come to be by other files and
    /// by specs that are still being found, of which a client that cannot be told to ask again would never hear.
    pub(super) pulls: bool,
    /// Whether what is completed may have places to fill in.
    pub(super) snippets: bool,
    /// Whether it knows the command that asks for the next completion.
    pub(super) suggests: bool,
    /// What it can be told to ask for again when settings or files have changed.
    pub(super) again: Vec<&'static str>,
    /// Whether a definition may say what leads to it, and all that it is.
    pub(super) links: bool,
    /// The same of the definition of a type.
    pub(super) type_links: bool,
    /// Whether problems may say which version of a text they are about.
    pub(super) versions: bool,
    /// Whether it opens what the code of a problem links to.
    pub(super) pages: bool,
    /// Whether an edit may say which versions of texts it is about.
    pub(super) documents: bool,
    /// Whether an edit may make files.
    pub(super) creates: bool,
    /// Whether it asks before it renames files.
    pub(super) renames: bool,
}

impl Client {
    pub(super) fn new(params: &lsp::InitializeParams) -> Client {
        let capabilities = &params.capabilities;
        let completes = capabilities.text_document.as_ref().and_then(|text| text.completion.as_ref());
        let completes = completes.and_then(|completion| completion.completion_item.as_ref());
        let encodings = capabilities.general.as_ref().and_then(|general| general.position_encodings.as_ref());
        let known = |kind: &lsp::PositionEncodingKind| encodings.is_some_and(|encodings| encodings.contains(kind));
        // Offsets are bytes here, so UTF-8 spares the counting; a client that names nothing counts UTF-16, by the
        // protocol.
        let encoding = if known(&lsp::PositionEncodingKind::UTF8) {
            Encoding::Utf8
        } else if known(&lsp::PositionEncodingKind::UTF32) && !known(&lsp::PositionEncodingKind::UTF16) {
            Encoding::Utf32
        } else {
            Encoding::Utf16
        };
        let workspace = capabilities.workspace.as_ref();
        let watched = workspace.and_then(|workspace| workspace.did_change_watched_files.as_ref());
        let diagnostics = workspace.and_then(|workspace| workspace.diagnostics.as_ref());
        let text = capabilities.text_document.as_ref();
        let refresh = |supported: Option<bool>, method| supported.unwrap_or(false).then_some(method);
        let again = [
            refresh(workspace.and_then(|it| it.inlay_hint.as_ref()?.refresh_support), "workspace/inlayHint/refresh"),
            refresh(workspace.and_then(|it| it.code_lens.as_ref()?.refresh_support), "workspace/codeLens/refresh"),
            refresh(
                workspace.and_then(|it| it.inline_value.as_ref()?.refresh_support),
                "workspace/inlineValue/refresh",
            ),
        ];
        let edits = workspace.and_then(|workspace| workspace.workspace_edit.as_ref());
        let creates = |kinds: &Vec<lsp::ResourceOperationKind>| kinds.contains(&lsp::ResourceOperationKind::Create);
        Client {
            again: again.into_iter().flatten().collect(),
            documents: edits.is_some_and(|edits| edits.document_changes == Some(true)),
            renames: workspace.and_then(|it| it.file_operations.as_ref()?.will_rename).unwrap_or(false),
            // Only `documentChanges` can say that a file is made.
            creates: edits.is_some_and(|edits| {
                edits.document_changes == Some(true) && edits.resource_operations.as_ref().is_some_and(creates)
            }),
            links: text.and_then(|text| text.definition.as_ref()?.link_support).unwrap_or(false),
            type_links: text.and_then(|text| text.type_definition.as_ref()?.link_support).unwrap_or(false),
            versions: text.and_then(|text| text.publish_diagnostics.as_ref()?.version_support).unwrap_or(false),
            pages: text
                .and_then(|text| text.publish_diagnostics.as_ref()?.diagnostics_capabilities.code_description_support)
                .unwrap_or(false),
            encoding,
            folders: list_folders(params),
            watches: watched.and_then(|watched| watched.dynamic_registration).unwrap_or(false),
            relative: watched.and_then(|watched| watched.relative_pattern_support).unwrap_or(false),
            pulls: text.is_some_and(|text| text.diagnostic.is_some())
                && diagnostics.and_then(|diagnostics| diagnostics.refresh_support).unwrap_or(false),
            snippets: completes.and_then(|item| item.snippet_support).unwrap_or(false),
            suggests: can_suggest(params),
        }
    }
}

/// Whether the editor has VS Code's command for it: by its name, or because its plugin says so as it does to other servers.
fn can_suggest(params: &lsp::InitializeParams) -> bool {
    const COMMAND: &str = "editor.action.triggerSuggest";
    let name = params.client_info.as_ref().map_or("", |client| client.name.as_str());
    let value = serde_json::to_value(&params.capabilities.experimental).unwrap_or_default();
    let told = value["commands"]["commands"].as_array().into_iter().flatten().any(|known| known == COMMAND);
    told || ["Visual Studio Code", "VSCodium", "Cursor", "code-server"].into_iter().any(|known| name.starts_with(known))
}

/// The folders that are open, or the one that older editors name.
fn list_folders(params: &lsp::InitializeParams) -> Vec<PathBuf> {
    let value = serde_json::to_value(params).unwrap_or_default();
    let uri = |value: &serde_json::Value| convert::to_path(&lsp::Uri(value.as_str()?.to_owned()));
    let listed = value["workspaceFolders"].as_array().into_iter().flatten().filter_map(|folder| uri(&folder["uri"]));
    let mut folders: Vec<PathBuf> = listed.collect();
    if folders.is_empty() {
        folders.extend(uri(&value["rootUri"]));
    }
    folders
}

/// What the editor may ask for.
pub(super) fn build_capabilities(client: &Client) -> lsp::ServerCapabilities {
    let encoding = match client.encoding {
        Encoding::Utf8 => lsp::PositionEncodingKind::UTF8,
        Encoding::Utf16 => lsp::PositionEncodingKind::UTF16,
        Encoding::Utf32 => lsp::PositionEncodingKind::UTF32,
    };
    lsp::ServerCapabilities {
        position_encoding: Some(encoding),
        text_document_sync: Some(lsp::TextDocumentSync::Options(lsp::TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(lsp::TextDocumentSyncKind::Incremental),
            save: Some(true.into()),
            ..Default::default()
        })),
        execute_command_provider: Some(lsp::ExecuteCommandOptions {
            commands: COMMANDS.iter().map(|&command| command.to_owned()).collect(),
            ..Default::default()
        }),
        workspace: Some(lsp::WorkspaceOptions {
            workspace_folders: Some(lsp::WorkspaceFoldersServerCapabilities {
                supported: Some(true),
                change_notifications: Some(true.into()),
            }),
            file_operations: client
                .renames
                .then(|| lsp::FileOperationOptions { will_rename: Some(watch_renames()), ..Default::default() }),
            ..Default::default()
        }),
        completion_provider: Some(lsp::CompletionOptions {
            trigger_characters: Some(split_chars("<:.|=\"/ {%")),
            ..Default::default()
        }),
        signature_help_provider: Some(lsp::SignatureHelpOptions {
            trigger_characters: Some(split_chars(":.|= ")),
            ..Default::default()
        }),
        hover_provider: Some(true.into()),
        inlay_hint_provider: Some(true.into()),
        code_lens_provider: Some(lsp::CodeLensOptions { resolve_provider: Some(true), ..Default::default() }),
        inline_value_provider: Some(true.into()),
        document_symbol_provider: Some(true.into()),
        workspace_symbol_provider: Some(true.into()),
        folding_range_provider: Some(true.into()),
        selection_range_provider: Some(true.into()),
        document_link_provider: Some(lsp::DocumentLinkOptions::default()),
        linked_editing_range_provider: Some(true.into()),
        call_hierarchy_provider: Some(true.into()),
        semantic_tokens_provider: Some(lsp::SemanticTokensProvider::SemanticTokensOptions(
            lsp::SemanticTokensOptions {
                legend: super::handlers::tokens::build_legend(),
                range: Some(true.into()),
                full: Some(lsp::Full::SemanticTokensFullDelta(lsp::SemanticTokensFullDelta { delta: Some(true) })),
                ..Default::default()
            },
        )),
        definition_provider: Some(true.into()),
        type_definition_provider: Some(true.into()),
        references_provider: Some(true.into()),
        document_highlight_provider: Some(true.into()),
        rename_provider: Some(lsp::RenameProvider::RenameOptions(lsp::RenameOptions {
            prepare_provider: Some(true),
            ..Default::default()
        })),
        code_action_provider: Some(lsp::CodeActionProvider::CodeActionOptions(lsp::CodeActionOptions {
            code_action_kinds: Some(vec![
                lsp::CodeActionKind::QuickFix,
                lsp::CodeActionKind::RefactorExtract,
                lsp::CodeActionKind::RefactorInline,
                lsp::CodeActionKind::SourceFixAll,
            ]),
            ..Default::default()
        })),
        document_formatting_provider: Some(true.into()),
        document_range_formatting_provider: Some(true.into()),
        document_on_type_formatting_provider: Some(lsp::DocumentOnTypeFormattingOptions {
            first_trigger_character: "}".to_owned(),
            more_trigger_character: None,
        }),
        diagnostic_provider: client.pulls.then(|| {
            lsp::DiagnosticProvider::DiagnosticOptions(lsp::DiagnosticOptions {
                identifier: Some("swarmc".to_owned()),
                inter_file_dependencies: true,
                workspace_diagnostics: true,
                ..Default::default()
            })
        }),
        ..Default::default()
    }
}

/// The renames that the editor asks about: a prompt can have any ending, and a folder holds files.
fn watch_renames() -> lsp::FileOperationRegistrationOptions {
    let pattern = lsp::FileOperationPattern { glob: "**/*".to_owned(), matches: None, options: None };
    lsp::FileOperationRegistrationOptions {
        filters: vec![lsp::FileOperationFilter { scheme: Some("file".to_owned()), pattern }],
    }
}

fn split_chars(signs: &str) -> Vec<String> {
    signs.chars().map(String::from).collect()
}
