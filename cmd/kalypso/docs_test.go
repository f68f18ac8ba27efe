package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/docgen"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// How the pages are tested. README.md, docs/*.md, docs/from/*.md, docs/reconcilers/*.md and
// examples/*/README.md are run from top to bottom. Each page runs in a work folder of its own,
// with kalypso, cue, git and the system's shell. A walk starts like a fresh container: the home
// folder is empty, git has no user, and CUE has no cache. Only the dates of commits are set.
//
//   - "git clone https://github.com/kalypso-io/kalypso [DIR]" copies the examples and
//     testdata/platform of this repository. The README of an example begins with the
//     example in the work folder. On a page with <!-- parse only --> commands of
//     kalypso are parsed, and not run.
//   - A page with <!-- run by PACKAGE --> is run by the tests of that package.
//   - A page with <!-- make test-all --> takes long: TestSlowDocs runs it.
//   - The text after <!-- needs: PROGRAM --> is run only if that program is installed.
//   - A line that is a path in backquotes with a colon, `PATH`:, names the next block.
//     The test writes that block to PATH of the current folder.
//   - In a block ```console, a line "$ command" is run, and lines "> more" after it are
//     part of it. The other lines must be the output of the command, stdout and stderr
//     together. A line "..." stands for any lines, and /work for the work folder.
//   - Seconds, numbers of bytes and commit ids may differ from the page. So may
//     abbreviated ids on a page that sets KALYPSO_NOW, because compiled commits depend
//     on the version of kalypso. Equal ids on the page must be equal in the output.
//   - In a block ```sh, every line is run, and must succeed. The test does not check its
//     output.
//   - "cd DIR" and "export NAME=VALUE..." apply to the rest of the page. For "make TARGET"
//     and "go install PACKAGE", the test only checks that the target or package exists.
//
// KALYPSO_UPDATE=1 writes the output of commands into the pages, and generates the generated
// pages again.

const repository = "../.."

func TestReference(t *testing.T) {
	pages, err := docgen.Pages(newPlatform(streams{}, nil).root())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range pages {
		file := filepath.Join(repository, "docs", name)
		if updating() {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != string(want) {
			t.Errorf("docs/%s is not what its sources say; `make docs` writes it anew", name)
		}
	}
}

func TestDocs(t *testing.T) { docs(t) }

func TestSlowDocs(t *testing.T) {
	isolated.Slow(t, "the pages that it runs take long")
	docs(t)
}

// slowPage is on the pages of TestSlowDocs.
const slowPage = "<!-- make test-all -->"

// elsewhere names the package that runs a page.
var elsewhere = regexp.MustCompile(`(?m)^<!-- run by (\S+) -->$`)

func docs(t *testing.T) {
	var files []string
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/from/*.md", "docs/reconcilers/*.md", "examples/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		name, err := filepath.Rel(repository, file)
		if err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(before, []byte("\n"+slowPage+"\n")) != isolated.IsSlow(t) {
			continue
		}
		if m := elsewhere.FindSubmatch(before); m != nil {
			if err := checkPackage("github.com/kalypso-io/kalypso/" + string(m[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWalk(t, name)
			after := w.run(string(before))
			if updating() && after != string(before) {
				if err := os.WriteFile(file, []byte(after), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func updating() bool { return os.Getenv("KALYPSO_UPDATE") == "1" }

// walk is one run of a page.
type walk struct {
	*testing.T
	name      string
	env       []string
	work, dir string // the work folder, and the current one
	parseOnly bool
	file      string // the path for the next block; "" if it is not written
	// ids maps the ids on the page to the ids that commands print. It is nil on a page with
	// unrelated ids.
	ids map[string]string
}

func newWalk(t *testing.T, name string) *walk {
	base := t.TempDir()
	work := filepath.Join(base, "work")
	if err := os.Mkdir(work, 0o777); err != nil {
		t.Fatal(err)
	}
	w := &walk{T: t, name: name, work: work, dir: work, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + base, "CUE_CACHE_DIR=" + filepath.Join(base, "cue"),
		"CUE_REGISTRY=none", "NO_COLOR=1", "LC_ALL=C",
	}}
	w.env = append(w.env, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	if example, ok := strings.CutPrefix(filepath.ToSlash(filepath.Dir(name)), "examples/"); ok {
		w.copyFrom("examples/"+example, work)
	}
	return w
}

// needs names a program without which the rest of a page is not run.
var needs = regexp.MustCompile(`^<!-- needs: (.+) -->$`)

// caption names the file that the block after it is.
var caption = regexp.MustCompile("^`([^`]+)`:$")

// run runs a page, and returns it with the output of its commands.
func (w *walk) run(text string) string {
	lines := strings.Split(text, "\n")
	var out []string
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		if lines[i] == "<!-- parse only -->" {
			w.parseOnly = true
		}
		if m := needs.FindStringSubmatch(lines[i]); m != nil {
			if _, err := exec.LookPath(m[1]); err != nil {
				w.Run("needs "+m[1], func(t *testing.T) { t.Skip(m[1] + " is not installed, which make test-all does") })
				return strings.Join(append(out, lines[i+1:]...), "\n")
			}
		}
		language, fence := strings.CutPrefix(lines[i], "```")
		if !fence {
			if w.file != "" && lines[i] != "" {
				w.Fatalf("%s:%d: no block follows the name of the file %s", w.name, i+1, w.file)
			}
			if m := caption.FindStringSubmatch(lines[i]); m != nil {
				w.file = m[1]
			}
			continue
		}
		length := slices.Index(lines[i+1:], "```")
		if length < 0 {
			w.Fatalf("%s:%d: the block has no end", w.name, i+1)
		}
		out = append(out, w.block(language, i+2, lines[i+1:i+1+length])...)
		out = append(out, "```")
		i += length + 1
	}
	if w.file != "" {
		w.Errorf("%s: no block follows the name of the file %s", w.name, w.file)
	}
	return strings.Join(out, "\n")
}

// copyFrom copies a folder of the repository.
func (w *walk) copyFrom(dir, to string) {
	if err := os.CopyFS(to, os.DirFS(filepath.Join(repository, dir))); err != nil {
		w.Fatal(err)
	}
}

// block runs a block that begins at a line, and returns it with the output of its commands.
func (w *walk) block(language string, line int, body []string) []string {
	if w.file != "" {
		w.write(w.file, body)
		w.file = ""
		return body
	}
	switch language {
	case "sh":
		for i := 0; i < len(body); i++ {
			at, command := line+i, body[i]
			for strings.HasSuffix(command, `\`) && i+1 < len(body) {
				i++
				command += "\n" + body[i]
			}
			if printed, err := w.command(at, command); err != nil {
				w.Errorf("%s:%d: %s: %v\n%s", w.name, at, command, err, printed)
			}
		}
	case "console":
		return w.console(line, body)
	}
	return body
}

func (w *walk) write(name string, body []string) {
	file := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Join(body, "\n")+"\n"), 0o666); err != nil {
		w.Fatal(err)
	}
}

func (w *walk) console(line int, body []string) []string {
	var out []string
	for i := 0; i < len(body); {
		first, isCommand := strings.CutPrefix(body[i], "$ ")
		if !isCommand {
			w.Fatalf("%s:%d: output without a command", w.name, line+i)
		}
		at := line + i
		command := []string{first}
		out = append(out, body[i])
		for i++; i < len(body) && strings.HasPrefix(body[i], "> "); i++ {
			command = append(command, strings.TrimPrefix(body[i], "> "))
			out = append(out, body[i])
		}
		var want []string
		for ; i < len(body) && !strings.HasPrefix(body[i], "$ "); i++ {
			want = append(want, body[i])
		}
		printed, err := w.command(at, strings.Join(command, "\n"))
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			w.Errorf("%s:%d: %v", w.name, at, err)
		}
		got := outputLines(printed)
		if printsAs(want, got) {
			got = want
		} else if !updating() && w.ids != nil && sameLines(w.renamed(want, got), got) {
			got = want
		} else if !updating() {
			w.Errorf("%s:%d: %s prints\n%s\nand not\n%s", w.name, at, first, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		out = append(out, got...)
	}
	return out
}

// outputLines returns the lines of a command's output, without the space at their ends, which
// readers cannot see.
func outputLines(printed []byte) []string {
	text := strings.TrimRight(string(printed), "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// printsAs reports whether a page may show the lines of got as want.
func printsAs(want, got []string) bool {
	return sameLines(want, got) || varies(want) && sameLines(blurred(want), blurred(got))
}

func sameLines(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "..." {
		return sameLines(want[1:], got) || len(got) > 0 && sameLines(want, got[1:])
	}
	return len(got) > 0 && want[0] == got[0] && sameLines(want[1:], got[1:])
}

// shownID is an id of git as pages show it, abbreviated or not.
var shownID = regexp.MustCompile(`\b[0-9a-f]{12}(?:[0-9a-f]{28})?\b`)

// renamed returns the lines of a page with the ids that commands print. An id that the page shows
// for the first time becomes the printed id in the same place.
func (w *walk) renamed(want, got []string) []string {
	var printed []string
	for _, line := range got {
		printed = append(printed, shownID.FindAllString(line, -1)...)
	}
	out := make([]string, len(want))
	n := 0
	for i, line := range want {
		out[i] = shownID.ReplaceAllStringFunc(line, func(id string) string {
			if _, known := w.ids[id[:12]]; !known && n < len(printed) {
				w.ids[id[:12]] = printed[n][:12]
			}
			n++
			if name := w.ids[id[:12]]; n <= len(printed) && strings.HasPrefix(printed[n-1], name) {
				return printed[n-1]
			}
			return w.ids[id[:12]]
		})
	}
	return out
}

// varying matches the texts that differ between two runs: commit ids, seconds with two decimals,
// and numbers of bytes.
var varying = regexp.MustCompile(`\b[0-9a-f]{40}\b|(?:\b[0-9]+\.[0-9]{2}( s\b|  ))|\b[0-9]+(?:\.[0-9])? [KMG]?i?B\b`)

func varies(lines []string) bool { return slices.ContainsFunc(lines, varying.MatchString) }

// blurred returns lines without their varying texts. It also removes the width of columns, which
// varies with them.
func blurred(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.Join(strings.Fields(varying.ReplaceAllString(line, " * ")), " ")
	}
	return out
}

// command runs a command, or only checks it if it must not be run.
func (w *walk) command(line int, command string) (printed []byte, err error) {
	words := strings.Fields(command)
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return nil, nil
	}
	switch {
	case words[0] == "make":
		return nil, checkTargets(words[1:])
	case len(words) == 3 && words[0] == "go" && words[1] == "install":
		return nil, checkPackage(words[2])
	case w.parseOnly:
		return nil, checkCommand(shellWords(command))
	case len(words) > 2 && strings.Join(words[:3], " ") == "git clone https://github.com/kalypso-io/kalypso":
		clone := filepath.Join(w.dir, append(words[3:], "kalypso")[0])
		for _, dir := range []string{"examples", "testdata/platform"} {
			w.copyFrom(dir, filepath.Join(clone, dir))
		}
		return nil, nil
	case words[0] == "cd" && len(words) == 2:
		w.dir = filepath.Join(w.dir, words[1])
		return nil, nil
	case words[0] == "export":
		return w.export(command, words[1:])
	}
	cmd := exec.CommandContext(w.Context(), "sh", "-c", command)
	cmd.Dir, cmd.Env = w.dir, w.env
	printed, err = cmd.CombinedOutput()
	return bytes.ReplaceAll(printed, []byte(w.work), []byte("/work")), err
}

// export sets variables for the commands that follow, as a shell understands them. No
// value has two lines.
func (w *walk) export(command string, assignments []string) ([]byte, error) {
	for _, a := range assignments {
		name, _, _ := strings.Cut(a, "=")
		command += " && printenv " + name
	}
	cmd := exec.CommandContext(w.Context(), "sh", "-c", command)
	cmd.Dir, cmd.Env = w.dir, w.env
	printed, err := cmd.CombinedOutput()
	values := strings.Split(string(printed), "\n")
	if err != nil || len(values) != len(assignments)+1 {
		return printed, errors.Join(err, fmt.Errorf("%s: not one line for each", command))
	}
	for i, a := range assignments {
		name, _, _ := strings.Cut(a, "=")
		w.env = append(w.env, name+"="+values[i])
		if name == "KALYPSO_NOW" && w.ids == nil {
			w.ids = map[string]string{}
		}
	}
	return nil, nil
}

// checkTargets checks that the Makefile has the targets. It ignores words with =, which are
// variables, and the text after #, which is for the reader.
func checkTargets(words []string) error {
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	if err != nil {
		return err
	}
	for _, word := range words {
		if word == "#" {
			break
		}
		if !strings.Contains(word, "=") && !strings.Contains("\n"+string(makefile), "\n"+word+":") {
			return fmt.Errorf("the Makefile has no target %s", word)
		}
	}
	return nil
}

func checkPackage(name string) error {
	path, _, _ := strings.Cut(name, "@")
	dir, ours := strings.CutPrefix(path, "github.com/kalypso-io/kalypso/")
	if !ours {
		return fmt.Errorf("%s is not ours", path)
	}
	_, err := fs.Stat(os.DirFS(repository), dir)
	return err
}

var shellWord = regexp.MustCompile(`(?:[^\s"']|"[^"]*"|'[^']*')+`)

// shellWords splits a command into words as a shell does, without their quotes.
func shellWords(command string) []string {
	words := shellWord.FindAllString(command, -1)
	for i, word := range words {
		words[i] = strings.NewReplacer(`"`, "", `'`, "").Replace(word)
	}
	return words
}

// checkCommand checks that a command line is a valid command of kalypso. It ignores the other
// program after a pipe and the file after >.
func checkCommand(words []string) error {
	if words[0] != "kalypso" {
		return fmt.Errorf("not a command of kalypso: %s", words)
	}
	if i := slices.IndexFunc(words, func(w string) bool { return w == "|" || w == ">" || w == "#" }); i >= 0 {
		words = words[:i]
	}
	cmd, rest, err := newPlatform(streams{}, nil).root().Find(words[1:])
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// The checks above are worth something only if they can fail.
func TestDocsChecksFail(t *testing.T) {
	for _, c := range []struct {
		want, got string
		as        bool
	}{
		{"a\nb", "a\nb", true},
		{"a\nb", "a", false},
		{"a", "a\nb", false},
		{"a\n...", "a\nb\nc", true},
		{"a\n...\nc", "a\nc", true},
		{"...\nc", "a\nb", false},
		{"", "a", false},
		{"in 0.05 s", "in 1.25 s", true},
		{"commit 0123456789012345678901234567890123456789 on a", "commit abcdefabcdabcdefabcdabcdefabcdabcdefabcd on a", true},
		{"commit 0123456789012345678901234567890123456789 on a", "commit abcdefabcdabcdefabcdabcdefabcdabcdefabcd on b", false},
		{"LEVEL  READ   SECONDS\ntuple  636 B  0.01  5", "LEVEL  READ     SECONDS\ntuple  1.2 KiB  0.20  5", true},
		{"LEVEL  READ   SECONDS\ntuple  636 B  0.01  5", "LEVEL  READ     SECONDS\ntuple  1.2 KiB  0.20  6", false},
		{"a  b", "a b", false},
		{"1.25", "1.26", false},
	} {
		if got := printsAs(outputLines([]byte(c.want)), outputLines([]byte(c.got))); got != c.as {
			t.Errorf("%q as %q: %t", c.got, c.want, got)
		}
	}
	w := &walk{ids: map[string]string{}}
	for _, c := range []struct {
		want, got string
		as        bool
	}{
		{"a at 0123456789ab", "a at abcdefabcdef", true},
		{"b at 0123456789ab", "b at abcdefabcdef", true},
		{"commit 0123456789abcccccccccccccccccccccccccccccccc", "commit abcdefabcdefdddddddddddddddddddddddddddddddd", false}, // 44 digits are not an id
		{"commit 0123456789abcccccccccccccccccccccccccccc", "commit abcdefabcdefdddddddddddddddddddddddddddd", true},
		{"c at 0123456789ab", "c at 000000000000", false},
		{"c at 111111111111", "d at 000000000000", false},
	} {
		if got := sameLines(w.renamed(outputLines([]byte(c.want)), outputLines([]byte(c.got))), outputLines([]byte(c.got))); got != c.as {
			t.Errorf("%q as %q with ids: %t", c.got, c.want, got)
		}
	}
	for line, ok := range map[string]bool{
		"kalypso build dev --to out # one":  true,
		"kalypso bild":                      false,
		"kalypso build --too out":           false,
		"kalypso version 3":                 false,
		"rm -r out":                         false,
		`kalypso reject 4f2 -m "two words"`: true,
		`kalypso reject 4f2 -m two words`:   false,
	} {
		if err := checkCommand(shellWords(line)); (err == nil) != ok {
			t.Errorf("%s: %v", line, err)
		}
	}
	if err := checkTargets([]string{"example", "EXAMPLE=factory", "#", "shows"}); err != nil {
		t.Error(err)
	}
	if checkTargets([]string{"exemple"}) == nil || checkPackage("github.com/kalypso-io/kalypso/cmd/kalipso@latest") == nil {
		t.Error("what is not there passes")
	}
}
