package compiler_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/internal/testing/randplatform"
)

// history is a random platform and edits of it. The number of an edit seeds its random source. So
// a history without some of its edits is a history too.
type history struct {
	seed  uint64
	edits []int
	fleet bool // whether the platform has inventories
}

// step is one moment of a history.
type step struct {
	number      int // 0 for the new platform, otherwise the number of the edit
	platformDir string
	edit        randplatform.Kind
	before      outcome // the outcome of the step before
	want        outcome // the outcome of a build that knows only the output before
	r           *rand.Rand
}

// follower builds the platform of one history after every edit, in one of the possible ways. It
// describes the first mistake, and returns "" if there is no mistake.
type follower struct {
	name string
	step func(s *step) string
	// end, if not nil, is called after the last step.
	end func(s *step) string
}

// variant starts to follow a history, with root as its working folder.
type variant func(t *testing.T, root string) follower

// check builds the platform after each edit. It returns a description of each step, and the first
// broken property.
func (h history) check(t *testing.T, variants []variant) (did []string, broken string) {
	root, err := os.MkdirTemp(t.TempDir(), "history")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	var followers []follower
	for i, v := range variants {
		dir := filepath.Join(root, fmt.Sprint("variant", i))
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		followers = append(followers, v(t, dir))
	}
	p := randplatform.New(h.seed)
	if h.fleet {
		p = randplatform.NewFleet(h.seed)
	}
	s := &step{platformDir: filepath.Join(root, "repository", "platform")}
	last := map[string]map[string]string{} // text of the platform -> its output, if it had no error
	for i := range len(h.edits) + 1 {
		what := "new"
		if i > 0 {
			s.number = h.edits[i-1]
			what = fmt.Sprintf("seed %d, edit %d: %s", h.seed, s.number, p.Edit(rand.New(rand.NewPCG(h.seed, uint64(s.number)))))
			s.edit = p.LastEdit()
		}
		did = append(did, what)
		if err := p.Write(s.platformDir); err != nil {
			t.Fatal(err)
		}
		s.want = cold(t, root, s.platformDir, s.before.files)
		s.r = rand.New(rand.NewPCG(h.seed, 1<<32+uint64(s.number)))
		for _, f := range followers {
			if broken := f.step(s); broken != "" {
				return did, f.name + ": " + broken
			}
		}
		if broken := h.itself(t, root, s, p, last); broken != "" {
			return did, broken
		}
		s.before = s.want
	}
	for _, f := range followers {
		if f.end == nil {
			continue
		}
		if broken := f.end(s); broken != "" {
			return did, f.name + ", in the end: " + broken
		}
	}
	return did, ""
}

// cold builds over a copy of the previous output, without any other memory. It removes the
// digests of the cluster types from the record, so that the build examines all of them.
func cold(t *testing.T, root, platformDir string, before map[string]string) outcome {
	scratch, err := os.MkdirTemp(root, "scratch")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(scratch)
	out := filepath.Join(scratch, "out")
	without := maps.Clone(before)
	for p, text := range before {
		if strings.HasSuffix(p, ".kalypso/provenance.json") {
			without[p] = madeOf.ReplaceAllString(text, "")
		}
	}
	writeFiles(t, out, without)
	o := compileTo(t, compiler.Request{Dir: platformDir}, out)
	for p, text := range o.files {
		if text == without[p] {
			o.files[p] = before[p] // the build did not change it
		}
	}
	return o
}

var madeOf = regexp.MustCompile(`"digest":"[0-9a-f]*",`)

// itself checks the properties of every outcome of a step, whichever way it was built.
func (h history) itself(t *testing.T, root string, s *step, p *randplatform.Platform, last map[string]map[string]string) string {
	if d := misreported(s.before.files, s.want); d != "" {
		return d
	}
	if d := lost(s.before.files, s.want); d != "" {
		return d
	}
	if d := entriesGone(s.before.files, s.want.files, p); d != "" {
		return d
	}
	if !s.want.clean() || s.want.leaves() {
		return ""
	}
	text := fmt.Sprint(p.Files())
	if files := last[text]; files != nil {
		if d := differs(s.want.files, files); d != "" {
			return "as it was before, but " + d
		}
	}
	last[text] = s.want.files
	if !s.before.clean() || s.before.leaves() {
		if d := differs(s.want.files, cold(t, root, s.platformDir, nil).files); d != "" {
			return "errors leave something: " + d
		}
	}
	return ""
}

// shrink returns the history without the edits that the failure does not need.
func (h history) shrink(t *testing.T, variants []variant) history {
	for i := len(h.edits) - 1; i >= 0; i-- {
		less := history{h.seed, slices.Delete(slices.Clone(h.edits), i, i+1), h.fleet}
		if _, broken := less.check(t, variants); broken != "" {
			h = less
		}
	}
	return h
}

// without returns a copy of a map without some of its keys.
func without(m map[string]string, not func(name string) bool) map[string]string {
	out := maps.Clone(m)
	maps.DeleteFunc(out, func(name, _ string) bool { return not(name) })
	return out
}
