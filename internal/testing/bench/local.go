//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// local is the cost of promotions between repositories in folders, with only git. The costs
// include git's work for the other side.
type local struct {
	Files   int   `json:"files"`   // of the branch
	Wanted  int   `json:"wanted"`  // how many were to change
	Changed int   `json:"changed"` // number of changed files
	One     cost  `json:"one"`
	Chain   int   `json:"chain"` // environments, each after the one before
	All     *cost `json:"all,omitempty"`
}

// measureLocal promotes commits into one large branch, and into many small ones.
func measureLocal(k *kalypso, j job, o options) (out *local, err error) {
	out = &local{Wanted: o.local, Chain: o.environments}
	if o.files > 0 {
		if err := out.one(k, j, o); err != nil {
			return nil, err
		}
	}
	if o.environments > 0 {
		j.Dir += "-chain"
		err = out.chain(k, j, o)
	}
	return out, err
}

// folder makes repositories in a folder the ones of URLs.
func folder(dir string, names ...string) (out []*served, done func() error, err error) {
	s, err := serve(filepath.Join(dir, "server")) // whose repositories these are
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		r, err := s.repository(name)
		if err != nil {
			return nil, nil, errors.Join(err, s.close())
		}
		r.url = "file://" + r.dir
		out = append(out, r)
	}
	return out, s.close, nil
}

// one promotes commits that change some files of a large branch.
func (l *local) one(k *kalypso, j job, o options) (err error) {
	j.Assignments = o.files / filesEach
	if err := runStepOf("generate", j); err != nil {
		return err
	}
	p := &promotion{kalypso: k, job: j, runs: o.runs, out: &promotions{}, server: &server{}}
	all, done, err := folder(j.Dir, "platform.git", "gitops.git")
	if err != nil {
		return err
	}
	defer done() //nolint:errcheck // nobody asks it any more
	p.platform, p.gitops = all[0], all[1]
	if err := p.first([]int{l.Wanted}); err != nil {
		return err
	}
	if _, _, err := p.change(l.Wanted, p.cache()); err != nil { // an earlier run fetched the promoted objects
		return err
	}
	var before string
	least, err := bestCarried(o.runs, func() (c carried, err error) {
		before, c, err = p.change(l.Wanted, p.cache())
		return c, err
	})
	if err != nil {
		return err
	}
	changed, err := p.changed(before)
	l.Files, l.Changed, l.One = p.out.Files, len(changed), least.cost
	return errors.Join(err, removeFrom(j.Dir, j.Dir))
}

// chain promotes commits through a chain of environments, each after the one before, to all of
// them in one run.
func (l *local) chain(k *kalypso, j job, o options) error {
	all, done, err := folder(j.Dir, "platform.git", "gitops.git")
	if err != nil {
		return err
	}
	defer done() //nolint:errcheck // nobody asks it any more
	environments := make([]declared, l.Chain)
	for i := range environments {
		environments[i] = declared{name: fmt.Sprintf("e%02d", i), repository: all[1].url}
		if i > 0 {
			environments[i].after = environments[i-1].name
		}
	}
	if err := writeFleet(j.platform(), environments, 1); err != nil {
		return err
	}
	if err := writeEnvironments(j.platform(), environments...); err != nil {
		return err
	}
	changing := []byte("package platform\n\nconfigs: \"changing-1\": match: {}\n")
	if err := os.WriteFile(filepath.Join(j.platform(), "changing-1.cue"), changing, 0o644); err != nil {
		return err
	}
	cache := filepath.Join(j.Dir, "cache")
	last := environments[len(environments)-1].name
	value := 0
	least, err := bestCarried(o.runs+1, func() (c carried, err error) { // the first run has no earlier state
		value++
		if err := writeChanging(j.platform(), 1, value); err != nil {
			return c, err
		}
		if err := commitAll(j.platform(), fmt.Sprint("Change ", value), all[0].url); err != nil {
			return c, err
		}
		before := all[1].at(last)
		c.cost, _, err = costOf(k.command(cache, "promote", "--all", "--repo", all[0].url))
		if err == nil && all[1].at(last) == before {
			err = errors.New("nothing came to " + last)
		}
		return c, err
	})
	l.All = &least.cost
	return errors.Join(err, removeFrom(j.Dir, j.Dir))
}
