// The extension starts `kalypso lsp` for CUE files, and has no other part in what the editor shows.
"use strict";

const { workspace, window } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = async function () {
  const command = workspace.getConfiguration("kalypso").get("path", "kalypso");
  client = new LanguageClient(
    "kalypso",
    "Kalypso",
    { command, args: ["lsp"] },
    { documentSelector: [{ scheme: "file", language: "cue" }] },
  );
  try {
    await client.start();
  } catch (err) {
    window.showErrorMessage(
      `${command} lsp cannot be started: ${err.message}. Install kalypso, or say where it is in the setting kalypso.path.`,
    );
  }
};

exports.deactivate = function () {
  return client?.isRunning() ? client.stop() : undefined;
};
