//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// flowChecker checks the repositories of a flow with only git and `kalypso build`. It shares no
// code with promotion. It remembers everything that it has seen, and the actions of people.
type flowChecker struct {
	*flow
	tips              map[string]string   // of environments' branches
	lines             map[string][]string // first parents of them, oldest first
	records           map[string]*flowRecord
	trees             map[string]map[string]string
	notes             map[string]string            // of refs/notes/kalypso, by commit
	blobs             map[string]string            // their ids
	owns              map[string]string            // the ids of own files, by environment and commit
	notesAt           string                       // its commit
	by                map[string]bool              // commits that people made
	edited            map[string]map[string]bool   // paths that people changed, by environment
	foreign           map[string]map[string]string // files outside of the tree
	frozen            map[string]time.Time         // zero until somebody thaws it
	refused           map[string]bool              // commits that people rejected
	reverted          map[string]string            // commits that people reverted with `git revert`, by stop
	landed, successes int                          // how many were looked at
}

// flowSource is the source of a build, as its record names it.
type flowSource struct {
	Base        string `json:"base"`
	Environment string `json:"environment"`
}

type flowHold struct {
	Until       string `json:"until"`
	Base        string `json:"base"`
	Environment string `json:"environment"`
}

// flowRecord is the part of .kalypso/provenance.json that the checker reads.
type flowRecord struct {
	Source flowSource `json:"source"`
	Hold   *flowHold  `json:"hold"`
	Rings  []struct {
		Name   string     `json:"name"`
		Source flowSource `json:"source"`
		Hold   *flowHold  `json:"hold"`
	} `json:"rings"`
	ClusterTypes []struct {
		Name   string      `json:"name"`
		Ring   string      `json:"ring"`
		Kept   int         `json:"kept"`
		Source *flowSource `json:"source"`
	} `json:"clusterTypes"`
}

func newFlowChecker(f *flow) *flowChecker {
	return &flowChecker{
		flow: f, tips: map[string]string{}, lines: map[string][]string{}, records: map[string]*flowRecord{}, trees: map[string]map[string]string{},
		notes: map[string]string{}, blobs: map[string]string{}, owns: map[string]string{}, by: map[string]bool{}, edited: map[string]map[string]bool{}, foreign: map[string]map[string]string{},
		frozen: map[string]time.Time{}, refused: map[string]bool{}, reverted: map[string]string{},
	}
}

func (c *flowChecker) wrong(format string, args ...any) {
	c.t.Helper()
	text := fmt.Sprintf(format, args...)
	c.say("WRONG")
	c.t.Error(text)
}

// exit looks at the exit code of a run.
func (c *flowChecker) exit(code int, said string) {
	switch {
	case code == -1 || slices.Contains([]int{0, 5, 6, 7, 9}, code) && !c.state.typo || code == 3 && c.state.typo:
	default:
		c.wrong("exit code %d of promote --all:\n%s", code, said)
	}
}

// look checks everything that is new in the GitOps repository.
func (c *flowChecker) look() {
	refs := map[string]string{}
	for line := range strings.Lines(c.git("gitops", "for-each-ref", "--format=%(refname) %(objectname)")) {
		name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		refs[name] = id
	}
	c.readNotes(refs["refs/notes/kalypso"])
	fresh := map[string][]string{}
	for _, e := range c.environments { // first all histories: they are the evidence
		old, tip := c.tips[e.name], refs["refs/heads/"+e.name]
		if old == tip {
			continue
		}
		line := strings.Fields(c.git("gitops", "rev-list", "--first-parent", "--reverse", tip))
		before := slices.Index(line, old) + 1
		if old != "" && before == 0 {
			c.wrong("branch %s went from %s to %s, which does not follow", e.name, old, tip)
		}
		if old == "" && c.edited[e.name] != nil && c.person.kind != "adopt" && c.wasTold(e) {
			c.wrong("branch %s was deleted, and is begun anew", e.name)
		}
		fresh[e.name], c.lines[e.name], c.tips[e.name] = line[before:], line, tip
	}
	c.checkNotes()
	for _, e := range c.environments {
		for _, commit := range fresh[e.name] {
			if !c.by[commit] {
				c.checkTree(e, commit)
				c.checkStep(e, commit)
			}
		}
		for path, id := range c.foreign[e.name] {
			if tip := c.tips[e.name]; tip != "" && c.tree(tip)[path] != id {
				c.wrong("%s of branch %s is not what somebody put there", path, e.name)
			}
		}
	}
}

// wasTold reports whether the notes record that a commit of main reached an environment.
func (c *flowChecker) wasTold(e *flowEnvironment) bool {
	return slices.ContainsFunc(c.commits, func(id string) bool { return strings.Contains(c.notes[id], `"kalypso/`+e.name) })
}

// checkTree compares a commit with the output of a build from the source in its record.
func (c *flowChecker) checkTree(e *flowEnvironment, commit string) {
	is, want := c.tree(commit), map[string]string{}
	before := map[string]string{}
	if parent := c.parent(e, commit); parent != "" {
		before = c.tree(parent)
	}
	record := c.record(commit)
	if record == nil {
		c.wrong("commit %s of branch %s has no record", commit, e.name)
		return
	}
	for _, ct := range record.ClusterTypes {
		source := record.Source
		if ct.Source != nil {
			source = *ct.Source
		} else if of := c.has(commit, flowStop{e, ct.Ring}); ct.Ring != "" && of != source {
			c.wrong("commit %s of branch %s: cluster type %s is of %v and its ring %s of %v", commit, e.name, ct.Name, source, ct.Ring, of)
		}
		if ct.Ring != e.ringOf(ct.Name) {
			c.wrong("commit %s of branch %s: cluster type %s is in ring %q", commit, e.name, ct.Name, ct.Ring)
		}
		from := c.build(e, source)
		if ct.Kept > 0 {
			from = before
		}
		for path, id := range from {
			if strings.HasPrefix(path, ct.Name+"/") && (ct.Kept == 0 || strings.HasPrefix(path, ct.Name+"/shop-")) {
				want[path] = id
			}
		}
		if ct.Kept > 0 { // the list of its assignments is new
			for path, id := range is {
				if strings.HasPrefix(path, ct.Name+"/") && strings.Count(path, "/") == 1 {
					want[path] = id
				}
			}
		}
	}
	for _, stop := range e.stops() {
		source := c.has(commit, stop)
		for path := range c.build(e, source) {
			clusterType, _, _ := strings.Cut(path, "/")
			if _, there := want[path]; !there && stop.covers(clusterType) && !e.allow {
				c.wrong("commit %s of branch %s lacks %s of %v", commit, e.name, path, source)
			}
		}
	}
	paths := maps.Clone(is)
	maps.Copy(paths, want)
	for path := range paths {
		if c.person.kind == "overwrite" && c.edited[e.name][path] && is[path] != before[path] && (is[path] == want[path] || c.was(e, path, is[path])) {
			delete(c.edited[e.name], path) // it is restored, be it in a folder that is kept
			continue
		}
		mine := (c.edited[e.name][path] || c.unclaimed(e, commit, path)) && is[path] == before[path]
		if is[path] != want[path] && !mine {
			c.wrong("commit %s of branch %s: %s is %q and not %q", commit, e.name, path, is[path], want[path])
		}
	}
}

// was reports whether a commit by kalypso had a file with this content and mode.
func (c *flowChecker) was(e *flowEnvironment, path, id string) bool {
	return slices.ContainsFunc(c.lines[e.name], func(commit string) bool { return !c.by[commit] && c.tree(commit)[path] == id })
}

// checkStep checks that the gates allowed the changes of a commit.
func (c *flowChecker) checkStep(e *flowEnvironment, commit string) {
	parent := c.parent(e, commit)
	for _, stop := range e.stops() {
		had, has := c.has(parent, stop), c.has(commit, stop)
		if had == has {
			continue
		}
		if has.Base == "" {
			c.wrong("commit %s takes away what %s has", commit, stop.id())
			continue
		}
		c.landed++
		o := c.person
		if o.kind == "rollback" || o.kind == "exact" {
			continue
		}
		if hold := c.hold(parent, stop); hold != nil && c.stands(hold.Until) && o.kind != "commit" {
			c.wrong("commit %s comes to %s, which is held", commit, stop.id())
		}
		if until, frozen := c.frozen[e.name]; frozen && (until.IsZero() || c.now.Before(until)) {
			c.wrong("commit %s comes to %s, which is frozen", commit, stop.id())
		}
		if c.reverted[stop.id()] == has.Base && o.kind != "commit" {
			c.wrong("commit %s brings %v to %s, which somebody has reverted", commit, has, stop.id())
		}
		if parent != "" && c.record(parent) == nil && o.kind != "adopt" && o.kind != "overwrite" {
			c.wrong("commit %s comes to %s, whose record somebody removed", commit, stop.id())
		}
		if had.Base != has.Base && c.refused[has.Base] {
			c.wrong("commit %s comes to %s with %s, which is rejected", commit, stop.id(), has.Base)
		}
		if o.kind != "commit" && slices.Contains(c.commits, had.Base) && had.Base != has.Base {
			c.checkContent(commit, stop, had, has)
		}
		if !slices.Contains(c.commits, has.Base) && had.Base != has.Base {
			c.wrong("commit %s comes to %s with %s, which main does not have", commit, stop.id(), has.Base)
		}
		head := c.commits[len(c.commits)-1]
		if stop.ring != "main" && c.ownOf(e, has.Environment) != c.ownOf(e, head) {
			c.wrong("commit %s comes to %s with own files of %s, which are not those of main", commit, stop.id(), has.Environment)
		}
		if why := c.unproved(stop, had, has); why != "" {
			c.wrong("commit %s brings %v to %s: %s", commit, has, stop.id(), why)
		}
	}
}

// checkContent checks that a new base commit contains no rejected commit, and no commit that main
// has since reverted.
func (c *flowChecker) checkContent(commit string, stop flowStop, had, has flowSource) {
	at := slices.Index(c.commits, has.Base)
	for n := slices.Index(c.commits, had.Base) + 1; n <= at; n++ {
		undone := func(within []string) bool {
			return slices.ContainsFunc(within, func(id string) bool { return c.baseOf(id) == c.baseOf(c.commits[n-1]) })
		}
		if c.refused[c.commits[n]] && !undone(c.commits[n+1:at+1]) {
			c.wrong("commit %s brings %s to %s, which contains %s, which is rejected", commit, has.Base, stop.id(), c.commits[n])
		}
		next := c.commits[n+1 : min(n+2, len(c.commits))]
		again := n+2 < len(c.commits) && c.baseOf(c.commits[n+2]) == c.baseOf(c.commits[n])
		if n+1 > at && stop.of.advance == "" && c.baseOf(c.commits[n]) != c.baseOf(c.commits[n-1]) && undone(next) && !again {
			c.wrong("commit %s brings %s to %s, which main has taken back", commit, has.Base, stop.id())
		}
	}
}

// baseOf returns an identifier for the contents of a commit of the platform outside of
// environments/.
func (c *flowChecker) baseOf(commit string) string {
	key := "base " + commit
	if c.owns[key] == "" {
		var kept []string
		for line := range strings.Lines(c.git("p", "ls-tree", commit)) {
			if !strings.HasSuffix(strings.TrimSpace(line), "\tenvironments") {
				kept = append(kept, line)
			}
		}
		c.owns[key] = strings.Join(kept, "")
	}
	return c.owns[key]
}

// unproved returns the reason why nothing shows that a commit may enter a stop. It returns "" if
// it may.
func (c *flowChecker) unproved(stop flowStop, had, has flowSource) string {
	e := stop.of
	skips := c.person.kind == "skip" && c.person.environment == e.name
	soak := e.soak
	if skips {
		soak = 0
	}
	switch {
	case stop.ring == "main":
		if !skips {
			soak = max(soak, e.ringSoak)
		}
		return c.pairUnproved(flowStop{e, "canary"}, has, soak)
	case had.Base == has.Base || len(e.after) == 0:
		return ""
	}
	var whys []string
	for _, before := range c.environments {
		if !slices.Contains(e.after, before.name) {
			continue
		}
		var all []string
		for _, other := range before.stops() {
			if why := c.unprovedBy(other, stop, has, soak); why != "" {
				all = append(all, why)
			}
		}
		if len(all) == 0 && e.any {
			return ""
		}
		whys = append(whys, all...)
	}
	return strings.Join(whys, "; ")
}

// pairUnproved returns the reason why a base commit with the environment's own files is not known
// to have run in an earlier ring for long enough. Its time continues while that ring has newer
// own files with the same base commit that do not fail.
func (c *flowChecker) pairUnproved(stop flowStop, of flowSource, soak time.Duration) string {
	line := c.lines[stop.of.name]
	last := len(line) - 1
	for last >= 0 && c.has(line[last], stop) != of {
		last--
	}
	if last < 0 {
		return fmt.Sprintf("%v was never in %s", of, stop.id())
	}
	if hold := c.hold(line[len(line)-1], stop); hold != nil && hold.Base == of.Base && hold.Environment == "" {
		return fmt.Sprintf("it was rolled back from in %s", stop.id())
	}
	left, before := c.now, of
	for n, commit := range line[last+1:] {
		is := c.has(commit, stop)
		if is == before || c.sameIn(stop, line[last+n], commit) {
			before = is
			continue
		}
		failed := slices.ContainsFunc(c.said(commit, stop), func(n flowNote) bool { return n.State == "failure" })
		if is.Base != of.Base || slices.Index(c.commits, is.Environment) < slices.Index(c.commits, of.Environment) || failed {
			if at, told := c.entered(commit, stop); told {
				left = at
			}
			break
		}
		before = is
	}
	mine := flowStop{stop.of, "main"}
	if c.soaked(stop, mine, line, last, left, soak, of, func(is flowSource) bool { return is == of }) {
		return ""
	}
	return fmt.Sprintf("%v did not succeed in %s for %s", of, stop.id(), soak)
}

// unprovedBy returns the reason why a base commit is not known to have run in a stop for long
// enough, for the next stop, which gets it. Only its last stay counts. A stay lasts as long as
// its files do.
func (c *flowChecker) unprovedBy(stop, next flowStop, of flowSource, soak time.Duration) string {
	line := c.lines[stop.of.name]
	end := len(line) - 1
	for end >= 0 && c.has(line[end], stop).Base != of.Base {
		end--
	}
	if end < 0 {
		return fmt.Sprintf("it was never in %s", stop.id())
	}
	if hold := c.hold(line[len(line)-1], stop); hold != nil && hold.Base == of.Base {
		return fmt.Sprintf("it was rolled back from in %s", stop.id())
	}
	left, last := c.now, end
	for last+1 < len(line) && c.sameIn(stop, line[last], line[last+1]) {
		last++
	}
	if last+1 < len(line) { // it left when the first report about other files arrived
		if at, told := c.entered(line[last+1], stop); told {
			left = at
		}
	}
	if c.soaked(stop, next, line, end, left, soak, of, func(is flowSource) bool { return is.Base == of.Base }) {
		return ""
	}
	return fmt.Sprintf("it did not succeed in %s for %s", stop.id(), soak)
}

// sameIn reports whether two commits of a branch have the same files of a stop.
func (c *flowChecker) sameIn(stop flowStop, a, b string) bool {
	return c.record(a) != nil && c.record(b) != nil && maps.Equal(c.part(stop, a), c.part(stop, b))
}

// soaked reports whether something ran in a stop for long enough, without a failure since. It
// looks at a commit of its branch and at the commits around it with the same contents. The time
// starts when the contents entered the stop. If the next stop gets the same as the first of them,
// the time starts when the files entered.
func (c *flowChecker) soaked(stop, next flowStop, line []string, at int, left time.Time, soak time.Duration, of flowSource, is func(flowSource) bool) bool {
	first, last := at, at
	for first > 0 && (is(c.has(line[first-1], stop)) || c.sameIn(stop, line[first-1], line[first])) {
		first--
	}
	for last+1 < len(line) && (is(c.has(line[last+1], stop)) || c.sameIn(stop, line[last], line[last+1])) {
		last++
	}
	var ok, came time.Time
	for _, commit := range line[first : last+1] {
		if at, told := c.succeeded(commit, stop); told && ok.IsZero() {
			ok = at
		}
		if at, told := c.entered(commit, stop); told && came.IsZero() && is(c.has(commit, stop)) {
			came = at
		}
		for _, n := range c.health(commit, stop) {
			if ok = n.At; n.State == "failure" && soak > 0 {
				return false
			}
		}
	}
	if ok.IsZero() {
		return false
	}
	then := c.has(line[first], stop)
	then.Environment = of.Environment
	if came.After(ok) && (then.Base == of.Base || !maps.Equal(c.build(next.of, then), c.build(next.of, of))) {
		ok = came
	}
	return left.Sub(ok) >= soak
}

// flowNote is a line of a note.
type flowNote struct {
	Name, State string
	At          time.Time
}

func (c *flowChecker) said(commit string, stop flowStop) []flowNote {
	return c.statuses(commit, "kalypso/"+stop.id())
}

func (c *flowChecker) health(commit string, stop flowStop) []flowNote {
	return c.statuses(commit, "kalypso/"+stop.id()+":health")
}

func (c *flowChecker) statuses(commit, name string) []flowNote {
	var out []flowNote
	for line := range strings.Lines(c.notes[commit]) {
		var n flowNote
		if err := json.Unmarshal([]byte(line), &n); err == nil && n.Name == name {
			out = append(out, n)
		}
	}
	return out
}

func (c *flowChecker) succeeded(commit string, stop flowStop) (time.Time, bool) {
	for _, n := range c.said(commit, stop) {
		if n.State == "success" {
			return n.At, true
		}
	}
	return time.Time{}, false
}

func (c *flowChecker) entered(commit string, stop flowStop) (time.Time, bool) {
	if said := c.said(commit, stop); len(said) > 0 {
		return said[0].At, true
	}
	return time.Time{}, false
}

// readNotes reads the notes that are new.
func (c *flowChecker) readNotes(tip string) {
	if tip == c.notesAt {
		return
	}
	if c.notesAt != "" {
		if _, err := c.tryGit("gitops", "merge-base", "--is-ancestor", c.notesAt, tip); err != nil {
			c.wrong("notes went from %s to %s, which does not follow", c.notesAt, tip)
		}
	}
	c.notesAt = tip
	for line := range strings.Lines(c.git("gitops", "notes", "--ref=kalypso", "list")) {
		id, of, _ := strings.Cut(strings.TrimSpace(line), " ")
		if c.blobs[of] == id {
			continue
		}
		said := c.git("gitops", "cat-file", "blob", id) + "\n"
		c.blobs[of] = id
		for line := range strings.Lines(c.notes[of]) {
			if !strings.Contains(said, line) {
				c.wrong("the note of %s does not say any more: %s", of, line)
			}
		}
		c.notes[of] = said
	}
}

// checkNotes looks for the reports behind each success.
func (c *flowChecker) checkNotes() {
	for _, e := range c.environments {
		for _, commit := range c.lines[e.name] {
			for _, stop := range e.stops() {
				key := "seen " + stop.id() + " " + commit
				at, told := c.succeeded(commit, stop)
				if !told || c.by[key] {
					continue
				}
				c.by[key] = true
				c.successes++
				if !at.Equal(c.now) {
					c.wrong("%s is said at %s to have succeeded at %s", commit, c.now, at)
				}
				parent := c.parent(e, commit)
				if _, before := c.succeeded(parent, stop); before && c.sameIn(stop, parent, commit) {
					continue // the note about the same files, repeated
				}
				if why := c.unhealthy(stop, commit); why != "" {
					c.wrong("commit %s is said to have succeeded in %s: %s", commit, stop.id(), why)
				}
			}
		}
	}
}

// unhealthy returns the reason why clusters are not known to run a commit; "" if they do. A
// report about another commit counts if that commit has the same files of the stop.
func (c *flowChecker) unhealthy(stop flowStop, commit string) string {
	e := stop.of
	wanted, healthy, failed := 0, 0, 0
	mine := c.part(stop, commit)
	for _, folder := range c.assignments(stop, commit) {
		clusterType, target, _ := strings.Cut(folder, "/")
		for _, cluster := range e.clustersOf(clusterType) {
			wanted++
			var newest flowReport
			for _, r := range c.reports {
				if r.assignment == e.name+"/"+clusterType+"/"+target && r.cluster == cluster && !r.at.After(c.now) && !r.at.Before(newest.at) && c.contains(r.commit, mine) {
					newest = r
				}
			}
			switch newest.state {
			case "healthy":
				healthy++
			case "failed":
				failed++
			}
		}
	}
	switch {
	case wanted == 0:
		return "it wants nothing"
	case e.source == "none":
		return ""
	case healthy*100 < wanted*e.min || failed > e.maxFailed || healthy+failed == 0 && len(c.reports) == 0:
		return fmt.Sprintf("of %d are %d healthy and %d failed", wanted, healthy, failed)
	}
	return ""
}

// part returns the files of a stop in a commit.
func (c *flowChecker) part(stop flowStop, commit string) map[string]string {
	out := maps.Clone(c.tree(commit))
	maps.DeleteFunc(out, func(path, _ string) bool {
		clusterType, _, inside := strings.Cut(path, "/")
		return !inside || !stop.covers(clusterType) || strings.HasPrefix(path, ".")
	})
	return out
}

// contains reports whether a commit has the same files. It may have other files, too.
func (c *flowChecker) contains(commit string, files map[string]string) bool {
	for path, id := range files {
		if c.tree(commit)[path] != id {
			return false
		}
	}
	return true
}

// assignments are the folders of assignments in a stop's part of a commit.
func (c *flowChecker) assignments(stop flowStop, commit string) []string {
	found := map[string]bool{}
	for path := range c.tree(commit) {
		if parts := strings.Split(path, "/"); len(parts) == 3 && stop.covers(parts[0]) && !strings.HasPrefix(path, ".") {
			found[parts[0]+"/"+parts[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// build compiles a base commit with the own files of another, and returns its tree.
func (c *flowChecker) build(e *flowEnvironment, of flowSource) map[string]string {
	if of.Base == "" {
		return nil
	}
	key := fmt.Sprintf("%s %s %s", e.name, of.Base, c.ownOf(e, of.Environment))
	if tree, known := c.trees[key]; known {
		return tree
	}
	own := "environments/" + e.name
	c.git("p", "read-tree", of.Base)
	c.git("p", "rm", "-r", "-q", "-f", "--cached", "--ignore-unmatch", own)
	c.git("p", "read-tree", "--prefix="+own+"/", of.Environment+":"+own)
	at := c.git("p", "commit-tree", "-m", "scratch", c.git("p", "write-tree"))
	c.git("p", "read-tree", "refs/heads/main")
	_, said := c.kalypso(9, 0, "build", "--at", at, e.name, "--git", "../scratch", "--branch", e.name, "--flat", "--tree")
	tree := map[string]string{}
	if found := regexp.MustCompile(`(?m)^tree ([0-9a-f]+)$`).FindStringSubmatch(said); found != nil {
		tree = c.files("scratch", found[1])
	} else {
		c.wrong("%s does not compile:\n%s", key, said)
	}
	c.trees[key] = tree
	return tree
}

// ownOf is the tree of an environment's own files in a commit of the platform.
func (c *flowChecker) ownOf(e *flowEnvironment, commit string) string {
	name := commit + ":environments/" + e.name
	if c.owns[name] == "" {
		c.owns[name] = c.git("p", "rev-parse", name)
	}
	return c.owns[name]
}

// tree is a commit of the GitOps repository.
func (c *flowChecker) tree(commit string) map[string]string {
	tree, known := c.trees[commit]
	if !known {
		tree = c.files("gitops", commit)
		c.trees[commit] = tree
	}
	return tree
}

// files are mode and id by path, without the record.
func (c *flowChecker) files(dir, tree string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(c.git(dir, "ls-tree", "-r", tree)) {
		info, path, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if !strings.HasPrefix(path, ".kalypso/") {
			out[path] = info
		}
	}
	return out
}

func (c *flowChecker) parent(e *flowEnvironment, commit string) string {
	if i := slices.Index(c.lines[e.name], commit); i > 0 {
		return c.lines[e.name][i-1]
	}
	return ""
}

// record returns the record of a commit. It returns nil if the commit has no record.
func (c *flowChecker) record(commit string) *flowRecord {
	if r, known := c.records[commit]; known || commit == "" {
		return r
	}
	var r *flowRecord
	if text, err := c.tryGit("gitops", "show", commit+":.kalypso/provenance.json"); err == nil {
		r = &flowRecord{}
		if err := json.Unmarshal([]byte(text), r); err != nil {
			c.wrong("the record of %s: %v", commit, err)
		}
	}
	c.records[commit] = r
	return r
}

// has returns the source of a stop's contents in a commit, and hold its hold.
func (c *flowChecker) has(commit string, stop flowStop) flowSource {
	r := c.record(commit)
	if r == nil || stop.ring == "" {
		if r == nil {
			return flowSource{}
		}
		return r.Source
	}
	for _, ring := range r.Rings {
		if ring.Name == stop.ring {
			return ring.Source
		}
	}
	return flowSource{}
}

func (c *flowChecker) hold(commit string, stop flowStop) *flowHold {
	r := c.record(commit)
	if r == nil {
		return nil
	}
	for _, ring := range r.Rings {
		if ring.Name == stop.ring && ring.Hold != nil {
			return ring.Hold
		}
	}
	return r.Hold
}

// stands reports whether a hold or freeze that ends at a time has not ended.
func (c *flowChecker) stands(until string) bool {
	end, err := time.Parse(time.RFC3339, until)
	return err != nil || c.now.Before(end)
}
