package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/browser"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

func TestMain(m *testing.M) { isolated.Main(m) }

const docs = "../../../docs"

// TestSlowDemo runs the demonstration, and checks that it prints the text of testdata/output.txt.
// It also checks that the tour shows this text, and that the tour's pictures show the current
// pages. With KALYPSO_UPDATE=1 it writes all of them again.
func TestSlowDemo(t *testing.T) {
	isolated.Slow(t, "it builds the programs, and needs Chromium")
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	var printed bytes.Buffer
	err := run(t.Context(), options{out: &printed, end: true, broken: func(hub string) { pictures(t, hub) }})
	if err != nil {
		t.Fatalf("%v\n%s", err, &printed)
	}
	if left, err := filepath.Glob(filepath.Join(folder, "*kalypso*")); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v behind (%v)", left, err)
	}
	text := port.ReplaceAllString(printed.String(), "127.0.0.1:8080")
	const file = "testdata/output.txt"
	want, err := os.ReadFile(file)
	if blurred(string(want)) != blurred(text) {
		if os.Getenv("KALYPSO_UPDATE") != "1" {
			t.Errorf("it prints\n%s\nand not\n%s\n(%v)", blurred(text), blurred(string(want)), err)
		} else if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tour(t, text)
}

func pictures(t *testing.T, hub string) {
	tab := browser.NewTab(t, "")
	tab.CheckPicture(hub+"/", filepath.Join(docs, "pictures", "hub-fleet.png"), 560)
	tab.CheckPicture(hub+"/rollouts/prod", filepath.Join(docs, "pictures", "hub-rollout.png"), 700)
	tab.CheckPicture(hub+"/workloads/checkout", filepath.Join(docs, "pictures", "hub-workload.png"), 800)
	tab.CheckPicture(hub+"/clusters/prod/store-005", filepath.Join(docs, "pictures", "hub-cluster.png"), 700)
}

// port is the hub's.
var port = regexp.MustCompile(`\b127\.0\.0\.1:\d+`)

// varying are the other texts that differ between two runs.
var varying = []struct {
	*regexp.Regexp
	name string
}{
	{regexp.MustCompile(`\b(?:[0-9a-f]{40}|[0-9a-f]{12}|[0-9a-f]{10})\b`), "ID"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?Z`), "TIME"},
}

func blurred(text string) string {
	for _, v := range varying {
		text = v.ReplaceAllString(text, v.name)
	}
	return text
}

// tour checks that the tour shows commands of the demonstration, in their order, and their output.
// A line "..." stands for any lines.
func tour(t *testing.T, printed string) {
	file := filepath.Join(docs, "tour-hub.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ran := commands(strings.Split(printed, "\n"))
	var out []string
	for block, rest := "", string(text); rest != ""; {
		before, after, found := strings.Cut(rest, "```console\n")
		out = append(out, before)
		if !found {
			break
		}
		block, rest, _ = strings.Cut(after, "```\n")
		var lines []string
		for _, shown := range commands(strings.Split(strings.TrimSuffix(block, "\n"), "\n")) {
			n := slices.IndexFunc(ran, func(c []string) bool { return blurred(c[0]) == blurred(shown[0]) })
			if n < 0 {
				t.Fatalf("%s shows %s, which is not run, or earlier", file, shown[0])
			}
			if !printsAs(shown[1:], ran[n][1:]) {
				if os.Getenv("KALYPSO_UPDATE") != "1" {
					t.Errorf("%s prints\n%s\nand not\n%s", shown[0], strings.Join(ran[n][1:], "\n"), strings.Join(shown[1:], "\n"))
				}
				shown = ran[n]
			}
			lines = append(lines, shown...)
			ran = ran[n+1:]
		}
		out = append(out, "```console\n", strings.Join(lines, "\n"), "\n```\n")
	}
	if after := strings.Join(out, ""); after != string(text) && os.Getenv("KALYPSO_UPDATE") == "1" {
		if err := os.WriteFile(file, []byte(after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// commands returns each command with the lines that it prints.
func commands(lines []string) [][]string {
	var out [][]string
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "$ "):
			out = append(out, []string{line})
		case strings.HasPrefix(line, "# "): // printed text, after an empty line
			if n := len(out) - 1; n >= 0 && out[n][len(out[n])-1] == "" {
				out[n] = out[n][:len(out[n])-1]
			}
		case len(out) > 0:
			out[len(out)-1] = append(out[len(out)-1], line)
		}
	}
	return out
}

func printsAs(want, got []string) bool {
	switch {
	case len(want) == 0:
		return len(got) == 0
	case want[0] == "...":
		return printsAs(want[1:], got) || len(got) > 0 && printsAs(want, got[1:])
	}
	return len(got) > 0 && blurred(want[0]) == blurred(got[0]) && printsAs(want[1:], got[1:])
}
