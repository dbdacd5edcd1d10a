//! swarmc in Zed: how the language server is started. Everything else is in `extension.toml` and `languages`.
//!
//! In: the settings and the PATH of a worktree. Out: the command of the server, or what to do when it is missing.

use zed_extension_api::settings::LspSettings;
use zed_extension_api::{Command, Extension, LanguageServerId, Result, Worktree, register_extension, serde_json};

struct Swarmc;

impl Extension for Swarmc {
    fn new() -> Swarmc {
        Swarmc
    }

    fn language_server_command(&mut self, server: &LanguageServerId, worktree: &Worktree) -> Result<Command> {
        let binary = LspSettings::for_worktree(server.as_ref(), worktree).ok().and_then(|settings| settings.binary);
        let (path, arguments) = binary.map_or((None, None), |binary| (binary.path, binary.arguments));
        let missing = "`swarmc` is not on PATH: install it, or name it in `lsp.swarmc.binary.path` of the settings";
        Ok(Command {
            command: path.or_else(|| worktree.which("swarmc")).ok_or(missing)?,
            args: arguments.unwrap_or_else(|| vec!["lsp".to_owned()]),
            env: worktree.shell_env(),
        })
    }

    fn language_server_initialization_options(
        &mut self,
        server: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<serde_json::Value>> {
        Ok(LspSettings::for_worktree(server.as_ref(), worktree)?.initialization_options)
    }

    fn language_server_workspace_configuration(
        &mut self,
        server: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<serde_json::Value>> {
        Ok(LspSettings::for_worktree(server.as_ref(), worktree)?.settings)
    }
}

register_extension!(Swarmc);
