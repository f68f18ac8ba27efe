//go:build unix

package main

import (
	"slices"
	"strings"
	"time"
)

// deleted takes note that somebody deleted a branch.
func (c *flowChecker) deleted(environment string) {
	c.tips[environment], c.lines[environment] = "", nil
	c.edited[environment], c.foreign[environment] = map[string]bool{}, nil
}

// touched records the files that a person changed in a branch.
func (c *flowChecker) touched(environment, from, to string) {
	for _, commit := range strings.Fields(c.git("gitops", "rev-list", from+".."+to)) {
		c.by[commit] = true
	}
	for path, id := range c.tree(to) {
		if c.tree(from)[path] == id {
			continue
		}
		c.note(environment, path)
		if path == "notes.md" || strings.HasPrefix(path, ".github/") {
			if c.foreign[environment] == nil {
				c.foreign[environment] = map[string]string{}
			}
			c.foreign[environment][path] = id
		}
	}
	for path := range c.tree(from) {
		if c.tree(to)[path] == "" {
			c.note(environment, path)
		}
	}
	for _, stop := range c.environment(environment).stops() {
		if had := c.has(from, stop).Base; c.record(to) != nil && c.has(to, stop).Base != had {
			c.reverted[stop.id()] = had
		}
	}
}

func (c *flowChecker) note(environment, path string) {
	if c.edited[environment] == nil {
		c.edited[environment] = map[string]bool{}
	}
	c.edited[environment][path] = true
}

// ordered records an order, and checks that the repository has it.
func (c *flowChecker) ordered(o flowOrder, commit, until string, code int, said string) {
	if slices.Contains([]int{-1, 1, 4, 8}, code) || strings.Contains(said, "panic:") {
		c.wrong("exit code %d of %s", code, o.kind)
	}
	if code != 0 {
		return
	}
	switch o.kind {
	case "freeze":
		c.frozen[o.environment] = time.Time{}
		if until != "" {
			c.frozen[o.environment] = c.now.Add(2 * time.Hour)
		}
	case "thaw":
		delete(c.frozen, o.environment)
	case "reject":
		c.refused[commit] = true
	case "undo":
		delete(c.refused, commit)
	case "hold", "rollback", "exact", "release":
		e := c.environment(o.environment)
		if o.kind == "release" {
			for _, stop := range e.stops() {
				delete(c.reverted, stop.id())
			}
		}
		tip := c.git("gitops", "rev-parse", "refs/heads/"+e.name)
		for _, stop := range e.stops() {
			held := c.hold(tip, stop) != nil
			if (o.ring == "" || o.ring == stop.ring) && c.has(tip, stop).Base != "" && held != (o.kind != "release") {
				c.wrong("%s is done, and %s is held: %v", o.kind, stop.id(), held)
			}
		}
	}
}

func (c *flowChecker) environment(name string) *flowEnvironment {
	return c.environments[slices.IndexFunc(c.environments, func(e *flowEnvironment) bool { return e.name == name })]
}

// holds reports whether a part of an environment is held.
func (c *flowChecker) holds(e *flowEnvironment) bool {
	return slices.ContainsFunc(e.stops(), func(stop flowStop) bool {
		hold := c.hold(c.tips[e.name], stop)
		return hold != nil && c.stands(hold.Until)
	})
}

// dirty reports whether people have changed generated files.
func (c *flowChecker) dirty(e *flowEnvironment) bool {
	tip := c.tips[e.name]
	if tip == "" || c.record(tip) == nil {
		return tip != ""
	}
	for path := range c.tree(tip) {
		if c.unclaimed(e, tip, path) {
			return true
		}
	}
	for path := range c.edited[e.name] {
		if c.foreign[e.name][path] == "" && c.tree(tip)[path] != c.wants(e, tip)[path] {
			return true
		}
	}
	return false
}

// unclaimed reports whether a file of a commit is in the folder of a ring without contents. The
// file already existed when the branch started over, and the ring has yet to take it over.
func (c *flowChecker) unclaimed(e *flowEnvironment, commit, path string) bool {
	clusterType, _, _ := strings.Cut(path, "/")
	return c.record(commit) != nil && clusterType != path && clusterType[0] != '.' && slices.ContainsFunc(e.stops(), func(stop flowStop) bool {
		return stop.ring != "" && stop.covers(clusterType) && c.has(commit, stop) == flowSource{}
	})
}

// wants returns the output of a build of the sources in a commit's record.
func (c *flowChecker) wants(e *flowEnvironment, commit string) map[string]string {
	out := map[string]string{}
	for _, stop := range e.stops() {
		for path, id := range c.build(e, c.has(commit, stop)) {
			if clusterType, _, _ := strings.Cut(path, "/"); stop.covers(clusterType) {
				out[path] = id
			}
		}
	}
	return out
}

// rewritten reports whether main no longer has a commit that an environment has.
func (c *flowChecker) rewritten(e *flowEnvironment) bool {
	return slices.ContainsFunc(e.stops(), func(stop flowStop) bool {
		base := c.has(c.tips[e.name], stop).Base
		return base != "" && !slices.Contains(c.commits, base)
	})
}

// stuck returns the environments that people block, and the environments that wait for them.
func (c *flowChecker) stuck() map[string]bool {
	out := map[string]bool{}
	for _, e := range c.environments {
		n := 0
		for _, name := range e.after {
			if out[name] {
				n++
			}
		}
		until, frozen := c.frozen[e.name]
		gone := c.tips[e.name] == "" && c.wasTold(e)
		waits := n > 0 && (!e.any || n == len(e.after) || e.advance == "match-upstream")
		out[e.name] = waits || gone || frozen && until.IsZero() || c.holds(e) || c.dirty(e) || c.takenBack(e)
	}
	return out
}

// takenBack reports whether somebody has reverted a change in an environment.
func (c *flowChecker) takenBack(e *flowEnvironment) bool {
	return slices.ContainsFunc(e.stops(), func(stop flowStop) bool { return c.reverted[stop.id()] != "" })
}

// late returns a stop that lacks a commit although nobody blocks it. It returns "" if there is no
// such stop.
func (c *flowChecker) late(commit string, results []flowResult) string {
	stuck := c.stuck()
	for _, e := range c.environments {
		for _, stop := range e.stops() {
			has := c.has(c.tips[e.name], stop)
			if stuck[e.name] || has.Base == commit && c.ownOf(e, has.Environment) == c.ownOf(e, commit) {
				continue
			}
			if e.advance == "queue" && c.queues(stop, results) {
				stuck[e.name] = true
				for _, other := range c.environments { // that wait for it
					stuck[other.name] = stuck[other.name] || slices.ContainsFunc(other.after, func(name string) bool { return stuck[name] })
				}
				continue
			}
			return stop.id()
		}
	}
	return ""
}

// queues reports whether a commit that cannot advance blocks the commits behind it. A queue skips
// no commit.
func (c *flowChecker) queues(stop flowStop, results []flowResult) bool {
	return slices.ContainsFunc(results, func(r flowResult) bool {
		return r.Environment == stop.of.name && r.Ring == stop.ring && (r.State == "blocked" || r.State == "waiting")
	})
}

// verify compares the result of `kalypso verify` with the known changes by people.
func (c *flowChecker) verify() {
	for _, e := range c.environments {
		if c.tips[e.name] == "" {
			continue
		}
		code, said := c.kalypso(0, 0, "verify", e.name)
		if dirty := c.dirty(e); code != 0 && !dirty && !c.rewritten(e) || code == 0 && dirty {
			c.wrong("exit code %d of verify %s, and somebody changed it: %v\n%s", code, e.name, dirty, said)
		}
	}
}
