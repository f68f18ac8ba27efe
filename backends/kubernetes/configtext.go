package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// ConfigText returns all values, a struct, as one document.
//
//   - json and yaml hold the values themselves, with their types.
//   - env has a line NAME="value" for each value, which means the same to `sh`
//     (set -a; . file) and as an EnvironmentFile of systemd.
//   - sh has a line export NAME='value' for each value.
//   - configmap, which is no document, is env.
//
// In env and sh a scalar is its text, null is empty, and structs and lists are
// JSON. A name that is no environment variable's, and a value that an
// environment cannot hold, is a diagnostic, and is left out.
func ConfigText(format model.ConfigFormat, values model.Value) ([]byte, []diag.Diagnostic) {
	switch format {
	case model.JSON:
		var out bytes.Buffer
		if err := json.Indent(&out, values.AppendJSON(nil), "", "  "); err != nil {
			return nil, []diag.Diagnostic{unwritable(format, err)}
		}
		out.WriteByte('\n')
		return out.Bytes(), nil
	case model.YAML:
		out, err := yaml.Marshal(values)
		if err != nil {
			return nil, []diag.Diagnostic{unwritable(format, err)}
		}
		return out, nil
	case model.Sh:
		return assignments(values,
			func(name, value string) string { return "export " + name + "=" + singleQuoted(value) + "\n" })
	case model.Env, model.ConfigMap:
		return assignments(values, func(name, value string) string { return name + "=" + doubleQuoted(value) + "\n" })
	}
	return nil, []diag.Diagnostic{unwritable(format, fmt.Errorf("there is no such format"))}
}

func unwritable(format model.ConfigFormat, err error) diag.Diagnostic {
	return diag.New(diag.BadConfigKey, fmt.Sprintf("the platform config cannot be written as %s: %v", format, err))
}

// assignments returns a line, or several, for each value.
func assignments(values model.Value, line func(name, value string) string) ([]byte, []diag.Diagnostic) {
	var out bytes.Buffer
	var ds []diag.Diagnostic
	for _, f := range values.Fields() {
		value, err := valueText(f.Value)
		switch {
		case err != nil:
			ds = append(ds, badKey(f.Name, "cannot be written: "+err.Error(), ""))
		case !variableName(f.Name):
			ds = append(ds, badKey(f.Name, "cannot be the name of an environment variable",
				"use letters, digits and '_', or one of the config formats configmap, json and yaml"))
		case shellsOwn[f.Name]:
			ds = append(ds, badKey(f.Name, "has the name of a variable that shells keep for themselves",
				"use another name, or one of the config formats configmap, json and yaml"))
		case strings.ContainsRune(value, 0):
			ds = append(ds, badKey(f.Name, "has a NUL character, which an environment cannot hold",
				"encode the value, for instance with base64.Encode"))
		default:
			out.WriteString(line(f.Name, value))
		}
	}
	return out.Bytes(), ds
}

// variableName says whether a name is one of an environment variable
// (https://pubs.opengroup.org/onlinepubs/9799919799/basedefs/V1_chap08.html).
func variableName(name string) bool {
	for i, c := range name {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// shellsOwn are the variables that dash or bash set themselves, so that what a
// file gives them fails or is not what is read back (bash(1), Shell Variables;
// dash(1)).
var shellsOwn = map[string]bool{
	"_": true, "BASHOPTS": true, "BASHPID": true, "BASH_ALIASES": true, "BASH_ARGC": true, "BASH_ARGV": true,
	"BASH_ARGV0": true, "BASH_CMDS": true, "BASH_COMMAND": true, "BASH_LINENO": true, "BASH_MONOSECONDS": true,
	"BASH_REMATCH": true, "BASH_SOURCE": true, "BASH_SUBSHELL": true, "BASH_VERSINFO": true, "COMP_WORDBREAKS": true,
	"DIRSTACK": true, "EPOCHREALTIME": true, "EPOCHSECONDS": true, "EUID": true, "FUNCNAME": true, "GROUPS": true,
	"HISTCMD": true, "LINENO": true, "OPTIND": true, "PIPESTATUS": true, "PPID": true, "RANDOM": true, "SECONDS": true,
	"SHELLOPTS": true, "SRANDOM": true, "UID": true,
}

// singleQuoted quotes for sh: everything between single quotes is itself.
func singleQuoted(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// doubleQuoted quotes for sh and for systemd, which take a backslash before
// these four characters, and nothing else, for an escape (POSIX 2.2.3; systemd's
// SHELL_NEED_ESCAPE in src/basic/env-file.c).
func doubleQuoted(s string) string { return `"` + doubleQuotes.Replace(s) + `"` }

var doubleQuotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`")
