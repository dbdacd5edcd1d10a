// The language server as this window has it: started, restarted, asked.

import * as vscode from "vscode";
import {
    type DocumentSymbol,
    DocumentSymbolRequest,
    type DynamicFeature,
    ExecuteCommandRequest,
    LanguageClient,
    type LanguageClientOptions,
    type StaticFeature,
} from "vscode-languageclient/node";
import { ProgramMissing, findProgram, tellMissing } from "./program";

/** Specs, and whatever may be a prompt: which of them is ours, the server knows. */
const DOCUMENTS = ["kdl", "markdown", "plaintext"].flatMap((language) =>
    ["file", "untitled"].map((scheme) => ({ language, scheme })),
);

/** The client, without making commands of what the server can be asked to do: those here show the answers. */
class Client extends LanguageClient {
    public override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
        const method = "registrationType" in feature ? feature.registrationType.method : undefined;
        if (method !== ExecuteCommandRequest.method) {
            super.registerFeature(feature);
        }
    }
}

export class Server implements vscode.Disposable {
    /** The program, once it has been found. */
    public program: string | undefined;
    private client: Client | undefined;
    private readonly output = vscode.window.createOutputChannel("swarmc", { log: true });
    private readonly started = new vscode.EventEmitter<void>();
    /** The server has started, perhaps another program than before. */
    public readonly onStarted = this.started.event;
    /** Restarts one after the other. */
    private turn: Promise<void> = Promise.resolve();

    public constructor(private readonly context: vscode.ExtensionContext) {}

    public restart(): Promise<void> {
        this.turn = this.turn.then(() => this.startAgain()).catch((error: unknown) => this.failed(error));
        return this.turn;
    }

    /** What the server answers to a command of its own. */
    public async ask<T>(command: string, ...args: unknown[]): Promise<T> {
        if (!this.client?.isRunning()) {
            throw new Error("the language server does not run: use the command `swarmc: Restart the language server`");
        }
        return this.client.sendRequest<T>(ExecuteCommandRequest.method, { command, arguments: args });
    }

    /** The outline of a file, whether it is open or not. */
    public async listSymbols(uri: vscode.Uri): Promise<DocumentSymbol[] | null> {
        if (!this.client?.isRunning()) {
            return null;
        }
        const found = await this.client.sendRequest(DocumentSymbolRequest.type, { textDocument: { uri: uri.toString() } });
        return found as DocumentSymbol[] | null;
    }

    /** The program; where there is none, a person is told what to do about it. */
    public async needProgram(): Promise<string> {
        const found = await findProgram(this.context);
        if ("program" in found) {
            if (this.program !== found.program) {
                // It was installed, or another setting counts, since the server was started.
                this.program = found.program;
                void this.restart();
            }
            return found.program;
        }
        void tellMissing(this.context, found.wrong);
        throw new ProgramMissing();
    }

    /** What a lens says of places, in VS Code's terms. */
    public get converter(): LanguageClient["protocol2CodeConverter"] | undefined {
        return this.client?.protocol2CodeConverter;
    }

    public dispose(): void {
        void this.client?.dispose().catch(() => undefined);
        this.started.dispose();
        this.output.dispose();
    }

    private async startAgain(): Promise<void> {
        const old = this.client;
        this.client = undefined;
        await old?.dispose();
        this.program = undefined;
        const found = await findProgram(this.context);
        if (!("program" in found)) {
            // Not awaited: the message may stay there for hours.
            void tellMissing(this.context, found.wrong);
            return;
        }
        this.program = found.program;
        const settings = vscode.workspace.getConfiguration("swarmc");
        const options: LanguageClientOptions = {
            documentSelector: DOCUMENTS,
            outputChannel: this.output,
            synchronize: { configurationSection: "swarmc" },
            initializationOptions: { inlayHints: settings.get("inlayHints"), codeLens: settings.get("codeLens") },
        };
        const version = String(this.context.extension.packageJSON.version);
        this.output.info(`swarmc ${version}: starts ${this.program}`);
        const run = { command: this.program, args: settings.get<string[]>("arguments", ["lsp"]) };
        this.client = new Client("swarmc", "swarmc", run, options);
        await this.client.start();
        this.started.fire();
    }

    private failed(error: unknown): void {
        this.output.error(String(error));
        void vscode.window.showErrorMessage(
            `the language server does not start: ${String(error)}. Does \`swarmc --version\` work in a terminal?`,
        );
    }
}
