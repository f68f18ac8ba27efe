// Package kalypso holds the CUE module kalypso.io@v0, the schema and the
// standard library that platforms import, as the binary carries it.
package kalypso

import "embed"

// ModulePath and ModuleVersion are the module and the version that a platform's
// cue.mod/module.cue pins.
const (
	ModulePath    = "kalypso.io@v0"
	ModuleVersion = "v0.1.0"
)

// Module is the CUE module: cue.mod/module.cue, schema/ and stdlib/.
//
//go:embed cue.mod/module.cue schema/*.cue stdlib/*/*.cue
var Module embed.FS
