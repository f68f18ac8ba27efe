package compiler_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/semver"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// schemaVersions has a line for each version of the module kalypso.io. A line has the version,
// the digest of the module's files and, when it can no longer change, the word released.
const schemaVersions = "../testdata/schema-versions"

// TestSchemaVersion checks that a released schema never changes. A change of schema/ or stdlib/
// needs a new version in embed.go. KALYPSO_UPDATE=1 writes the digest of a version that is not
// released, and adds a new version.
func TestSchemaVersion(t *testing.T) {
	text, err := os.ReadFile(schemaVersions)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	got := kalypso.ModuleVersion + " " + compiler.Version().Schema
	last := lines[len(lines)-1]
	isReleased := strings.HasSuffix(last, " released")
	switch {
	case strings.TrimSuffix(last, " released") == got:
	case isReleased && versionOf(last) == kalypso.ModuleVersion:
		t.Fatalf("schema/ or stdlib/ changed since %s was released: raise ModuleVersion in embed.go", kalypso.ModuleVersion)
	case os.Getenv("KALYPSO_UPDATE") == "":
		t.Fatalf("%s ends with %q, and the schema is %q; KALYPSO_UPDATE=1 writes it", schemaVersions, last, got)
	case isReleased:
		lines = append(lines, got)
	default:
		lines[len(lines)-1] = got
	}
	for i, line := range lines {
		if i > 0 && (!strings.HasSuffix(lines[i-1], " released") || semver.Compare(versionOf(lines[i-1]), versionOf(line)) >= 0) {
			t.Errorf("%q follows %q: versions rise, and those before the last are released", line, lines[i-1])
		}
	}
	if os.Getenv("KALYPSO_UPDATE") != "" && !t.Failed() {
		if err := os.WriteFile(schemaVersions, []byte(strings.Join(lines, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func versionOf(line string) string {
	version, _, _ := strings.Cut(line, " ")
	return version
}

// TestOldPlatforms checks that platforms for older versions still build. The folder of a version
// has platforms from that time, which no one changes any more.
func TestOldPlatforms(t *testing.T) {
	platforms, err := filepath.Glob("../testdata/platforms/v*/*")
	if err != nil {
		t.Fatal(err)
	}
	var versions []string
	for _, dir := range platforms {
		version := filepath.Base(filepath.Dir(dir))
		versions = append(versions, version)
		t.Run(fmt.Sprintf("%s/%s", version, filepath.Base(dir)), func(t *testing.T) {
			b, err := compiler.Compile(t.Context(), compiler.Request{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range b.Diagnostics {
				if d.Severity == diag.Error {
					t.Errorf("%s %s %v", d.Code, d.Message, d.Sites)
				}
			}
			for _, e := range b.Environments {
				if e.Tree == nil || e.Counts.Assignments == 0 || e.Counts.Failed > 0 || e.Counts.Kept > 0 {
					t.Errorf("environment %s: %+v", e.Name, e.Counts)
				}
			}
		})
	}
	if !slices.Contains(versions, kalypso.ModuleVersion) {
		t.Errorf("testdata/platforms has no platform for %s: copy one of the examples there", kalypso.ModuleVersion)
	}
}
