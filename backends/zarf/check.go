package zarf

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// marker is what Zarf replaces in all text that it deploys, and in zarf.yaml, if
// it knows the name (variables.ReplaceTextTemplate of Zarf).
var marker = lazyregexp.New(`###ZARF_[A-Z0-9_]+###`)

// maxLine is the length of a line from which on Zarf loses what follows: it reads
// files with a buffer of this size, and does not look whether that was enough.
const maxLine = 1 << 20

// checkFiles reports files that Zarf would not deploy as they are.
func (f *folder) checkFiles() {
	for _, file := range f.files {
		if found := string(marker.Find(file.Data)); found != "" {
			ref, on := f.origin(file.Path, found)
			f.report(diag.New(diag.UnsupportedManifests,
				fmt.Sprintf("Zarf would replace %s in %s when it deploys the package", found, file.Path)).
				On(on).At(ref, "").Hinting("write it otherwise: the site gets what the platform says, as every other cluster does"))
		}
		if n := longestLine(file.Data); n >= maxLine {
			ref, on := f.origin(file.Path, "")
			f.report(diag.New(diag.TooLarge,
				fmt.Sprintf("%s has a line of %d bytes: Zarf loses what follows one of %d", file.Path, n, maxLine)).
				On(on).At(ref, "").Hinting("break the value into lines, or into several values"))
		}
	}
}

// origin returns where the content of a file comes from, as far as it holds a
// text: what to look at, and its path there or in the composed values.
func (f *folder) origin(file, text string) (ref model.Ref, on string) {
	path := "manifests"
	switch {
	case file == kubernetes.NamespaceFile:
		return f.a.NamespaceService.Ref, ""
	case file == valuesFile && strings.Contains(f.ownValues(), text):
		path = "manifests.helm.values"
	case file == kubernetes.PlatformConfigFile || file == valuesFile:
		return f.a.Ref, holder(f.a.Values, text)
	case strings.HasPrefix(file, filesFolder+"/"):
		path = "manifests.package.files"
	}
	return f.a.Ref.At(path), path
}

// ownValues are the application's values of a chart, as text.
func (f *folder) ownValues() string {
	if h := f.a.Manifests.Helm; h != nil && h.Values != nil {
		return h.Values.String()
	}
	return ""
}

// holder returns the path of the first value that holds a text; "" for any text.
func holder(v model.Value, text string) string {
	if text == "" {
		return ""
	}
	for _, field := range v.Fields() {
		if strings.Contains(field.Value.String(), text) || strings.Contains(field.Name, text) {
			return model.JoinPath(model.Label(field.Name), holder(field.Value, text))
		}
	}
	return ""
}

func longestLine(data []byte) int {
	longest := 0
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		longest = max(longest, len(line))
	}
	return longest
}

// checkDefinition reports what Zarf would replace in zarf.yaml itself.
func checkDefinition(ct *backends.ClusterType, file backends.File) []diag.Diagnostic {
	found := marker.Find(file.Data)
	if found == nil {
		return nil
	}
	return []diag.Diagnostic{diag.New(diag.BadSpec,
		fmt.Sprintf("Zarf would replace %s in %s when it makes the package", found, path.Join(ct.Name, file.Path))).
		At(ct.Ref, "").Hinting("write it otherwise in the cluster type's description or the assignments' sources")}
}
