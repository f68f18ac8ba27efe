package randplatform

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
)

// The edits below do not change the meaning of the platform.

func changeComment(p *Platform, r *rand.Rand) string {
	if chance(r, 30) {
		name := pick(r, p.cueFiles()...)
		p.comments[name] += pick(r, "\n", "// The end.\n")
		return "comment or blank line at the end of " + name
	}
	e := pick(r, p.entities...)
	e.comment = fmt.Sprintf("Note %d.", r.IntN(100))
	return "comment on " + e.title()
}

// cueFiles are the files that entities are in, sorted.
func (p *Platform) cueFiles() []string {
	names := map[string]bool{}
	for _, e := range p.entities {
		names[e.file] = true
		if e.awayFile != "" {
			names[e.awayFile] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func reorder(p *Platform, r *rand.Rand) string {
	e := pick(r, p.entities...)
	p.remove(e)
	p.entities = slices.Insert(p.entities, r.IntN(len(p.entities)+1), e)
	return "declare " + e.title() + " elsewhere"
}

func move(p *Platform, r *rand.Rand) string {
	e := pick(r, p.entities...)
	was := e.file
	if e.file = p.file(r, e.scope); e.file == was {
		return ""
	}
	return "move " + e.title() + " from " + was + " to " + e.file
}

func renameFile(p *Platform, r *rand.Rand) string {
	was := pick(r, p.cueFiles()...)
	now := path.Join(path.Dir(was), p.newName(pick(r, "a", "m", "z"))+".cue")
	p.renameFile(was, now)
	return "rename file " + was + " to " + now
}

func (p *Platform) renameFile(was, now string) {
	for _, e := range p.entities {
		if e.file == was {
			e.file = now
		}
		if e.awayFile == was {
			e.awayFile = now
		}
	}
	p.styles[now], p.comments[now] = p.styles[was], p.comments[was]
	delete(p.styles, was)
	delete(p.comments, was)
}

// Shuffle writes the same platform in another form: in files of other names and styles, with
// entities in another order, some in other files, and comments. The positions of errors change.
// The output of a build does not.
func (p *Platform) Shuffle(r *rand.Rand) {
	for _, e := range p.entities {
		if chance(r, 30) {
			e.file = p.file(r, e.scope)
		}
		if chance(r, 30) {
			e.comment = "Shuffled."
		}
	}
	for _, name := range p.cueFiles() {
		p.styles[name] = style(r.IntN(int(styles)))
		p.renameFile(name, path.Join(path.Dir(name), p.newName(pick(r, "a", "m", "z"))+".cue"))
	}
	r.Shuffle(len(p.entities), func(i, j int) { p.entities[i], p.entities[j] = p.entities[j], p.entities[i] })
}

func reformat(p *Platform, r *rand.Rand) string {
	name := pick(r, p.cueFiles()...)
	p.styles[name] = (p.styles[name] + 1 + style(r.IntN(int(styles)-1))) % styles
	return "reformat " + name
}

func touch(p *Platform, _ *rand.Rand) string {
	p.touched = true
	return "touch all files"
}
