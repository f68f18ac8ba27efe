package evaluate

import (
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

func badPath(path string) diag.Diagnostic {
	return diag.New(diag.BadPath, "the path "+string(model.AppendJSONString(nil, path))+" cannot be read").
		Hinting(`write names with dots between them, and quote a name with a dot in it: module."reject.tags"`)
}
