package evaluate

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// mutate changes a text at random, as an editing mistake would.
func mutate(draw *rand.Rand, text string) string {
	lines := strings.Split(text, "\n")
	i, j := draw.IntN(len(lines)), draw.IntN(len(lines))
	swap := func(from, to string) string {
		n := strings.Count(text, from)
		if n == 0 {
			return text
		}
		parts := strings.SplitAfterN(text, from, draw.IntN(n)+2)
		last := len(parts) - 2
		parts[last] = strings.TrimSuffix(parts[last], from) + to
		return strings.Join(parts, "")
	}
	switch draw.IntN(12) {
	case 0:
		lines = append(lines[:i], lines[i+1:]...)
	case 1:
		lines = append(lines[:i:i], append([]string{lines[j]}, lines[i:]...)...)
	case 2:
		lines[i], lines[j] = lines[j], lines[i]
	case 3:
		return swap("\"", "\"x")
	case 4:
		return swap(": \"", ": 1 & \"")
	case 5:
		return swap("labels", "lables")
	case 6:
		return swap("e", "é")
	case 7:
		return swap(": {", ": {_h: 1, ")
	case 8:
		return swap(": {", ": {[string]: _, ")
	case 9:
		return swap("\"", "\"\\(configs)")
	case 10:
		return swap("reconciler", "namespaceService")
	case 11:
		return swap("\": ", "\": *1 | ")
	}
	return strings.Join(lines, "\n")
}

// TestSlipsInUnits checks that after any editing mistake in a platform, its units and the whole
// have the same result.
func TestSlipsInUnits(t *testing.T) { slipsInUnits(t, 3) }

func TestSlowSlipsInUnits(t *testing.T) {
	isolated.Slow(t, "it makes more slips")
	slipsInUnits(t, 8)
}

// slipsInUnits changes each platform as many times as steps.
func slipsInUnits(t *testing.T, steps int) {
	draw := rand.New(rand.NewPCG(11, 13))
	inParts := 0
	for _, from := range platforms(t) {
		root, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(root, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(root, "*.cue"))
		if err != nil {
			t.Fatal(err)
		}
		more, err := filepath.Glob(filepath.Join(root, "environments", "*", "*.cue"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
		c := newMemory()
		for step := range steps {
			name := files[draw.IntN(len(files))]
			before, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			after := mutate(draw, string(before))
			if err := os.WriteFile(name, []byte(after), 0o666); err != nil {
				t.Fatal(err)
			}
			p, _, err := source.Open(root)
			if err != nil {
				t.Fatal(err)
			}
			for _, environment := range p.Folders {
				want := ask(t, p, environment, "whole", nil)
				what := fmt.Sprintf("%s, step %d, %s", from, step, name)
				got := ask(t, p, environment, []string{"", "each"}[step%2], c)
				same(t, what, got, want)
				if got.stats.Units > 1 {
					inParts++
				}
			}
			if t.Failed() {
				t.Fatalf("%s", after)
			}
			if draw.IntN(4) > 0 {
				after = string(before)
			}
			if err := os.WriteFile(name, []byte(after), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	if inParts == 0 {
		t.Error("nothing was evaluated in parts")
	}
}
