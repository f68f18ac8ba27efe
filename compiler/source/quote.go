package source

import (
	"crypto/sha256"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/internal/credential"
)

// maxQuoted is the size, in bytes, of the largest file whose lines are quoted.
const maxQuoted = 4 << 20

// note remembers the digest of a file at the time of reading. If a file is read twice and
// changes in between, it is never quoted.
func (p *Platform) note(name string, content Digest) {
	p.reading.Lock()
	defer p.reading.Unlock()
	if p.read == nil {
		p.read = map[string]Digest{}
	}
	if before, seen := p.read[name]; seen && before != content {
		content = Digest{}
	}
	p.read[name] = content
}

// Quote adds to diagnostics the lines at their first sites. It omits a line if its file was
// not read, or has changed since it was read. It also omits the first line and column of a
// file, because that position means the whole file.
func (p *Platform) Quote(ds []diag.Diagnostic) {
	files := map[string][]line{}
	for i := range ds {
		if len(ds[i].Sites) == 0 || ds[i].Sites[0].Position.IsZero() {
			continue
		}
		at := ds[i].Sites[0].Position
		lines, known := files[at.File]
		if !known {
			lines = linesOf(p.textOf(at.File))
			files[at.File] = lines
		}
		if n := at.Line - 1; n >= 0 && n+at.Column > 1 && n < len(lines) && !lines[n].inString {
			ds[i].Excerpt = diag.NewExcerpt(lines[n].text, at,
				lines[n].secret || credential.Named(lastName(ds[i].Path)))
		}
	}
}

// textOf returns a file as it was read; "" if that is not known.
func (p *Platform) textOf(name string) string {
	p.reading.Lock()
	content := p.read[name]
	p.reading.Unlock()
	if content == (Digest{}) {
		return ""
	}
	if info, err := p.files.Stat(name); err != nil || info.Size() > maxQuoted {
		return ""
	}
	data, err := p.files.ReadFile(name)
	if err != nil || sha256.Sum256(data) != content {
		return ""
	}
	return string(data)
}

// line is a line of a file.
type line struct {
	text     string
	inString bool // it is inside a string of several lines, where the text has no structure
	secret   bool // it is the value of a name above that looks like a secret's
}

// linesOf returns the lines of a text. A line is a value of the nearest line above with
// less indentation.
func linesOf(text string) []line {
	var out []line
	inString := false
	var around []string // the lines that the next one may be inside of, the nearest last
	for text := range strings.SplitSeq(text, "\n") {
		l := line{text: text, inString: inString}
		if strings.TrimSpace(text) != "" {
			for len(around) > 0 && indentation(around[len(around)-1]) >= indentation(text) {
				around = around[:len(around)-1]
			}
			if len(around) > 0 {
				l.secret = opensSecret(around[len(around)-1])
			}
			around = append(around, text)
		}
		if (strings.Count(text, `"""`)+strings.Count(text, "'''"))%2 == 1 {
			inString = !inString
		}
		out = append(out, l)
	}
	return out
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// opensSecret reports whether the value of a name that looks like a secret's begins after a line.
func opensSecret(line string) bool {
	name, ok := strings.CutSuffix(strings.TrimRight(line, " \t\r|>+-["), ":")
	return ok && credential.Named(lastName(name))
}

// lastName returns the part of a path after its last colon or point.
func lastName(path string) string { return path[strings.LastIndexAny(path, ":.")+1:] }
