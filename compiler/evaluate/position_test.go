package evaluate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// TestPositions checks that positions are in the user's files: never in the schema, and never
// at the line that declares a collection.
func TestPositions(t *testing.T) {
	p := open(t, map[string]string{
		"base.cue": "package platform\n\nconfigs: shared: {match: {}, values: BASE: 1}\n",
		"environments/dev/dev.cue": `@extern(embed)

package platform

configs: shared: values: DEV: 2
configs: [string]: layer: 3
_zones: ["a"]
for z in _zones {
	configs: "zone-\(z)": {match: zone: z, values: ZONE: z}
}
configs: embedded: {match: {}, values: _ @embed(file=data.yaml)}
clusterTypes: small: reconciler: "flux"
`,
		"environments/dev/data.yaml": "A:\n  B: 1\n",
	})
	pkg, ds := environment(t, p)
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	for ref, want := range map[model.Ref]string{
		{Collection: "configs", Name: "shared"}:                           "base.cue:3:10 environments/dev/dev.cue:5:10 environments/dev/dev.cue:6:10",
		{Collection: "configs", Name: "shared", Path: "values.BASE"}:      "base.cue:3:38",
		{Collection: "configs", Name: "shared", Path: "values.DEV"}:       "environments/dev/dev.cue:5:26",
		{Collection: "configs", Name: "shared", Path: "layer"}:            "environments/dev/dev.cue:6:27",
		{Collection: "configs", Name: "zone-a", Path: "values.ZONE"}:      "environments/dev/dev.cue:9:49 environments/dev/dev.cue:7:10",
		{Collection: "configs", Name: "embedded", Path: "values.A.B"}:     "environments/dev/data.yaml:2:3",
		{Collection: "clusterTypes", Name: "small", Path: "reconciler"}:   "environments/dev/dev.cue:12:34",
		{Collection: "clusterTypes", Name: "small", Path: "configFormat"}: "environments/dev/dev.cue:12:15",
		{Collection: "environments", Name: "dev"}:                         "platform.cue:16:15",
	} {
		var got []string
		for _, p := range pkg.Model.Positions.Of(ref) {
			got = append(got, fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column))
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: got %s, want %s", ref, got, want)
		}
	}
}
