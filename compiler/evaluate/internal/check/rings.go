package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// checkRings reports rings that are named alike, or wait for each other or for what
// is not there, and gates of theirs.
func (x *Stages) checkRings(p *model.Promotion, ref model.Ref, environment string, up upstream) {
	var names []string
	after, rest := map[string][]string{}, ""
	for i := range p.Rings {
		r, at := &p.Rings[i], ref.At(fmt.Sprintf("[%d]", i))
		if slices.Contains(names, r.Name) {
			x.Fail(at.At("name"), diag.New(diag.Rings, fmt.Sprintf("environment %s has two rings %s", environment, r.Name)).
				Hinting("give each a name of its own"))
		}
		if r.Select.Op == model.OpAll {
			if rest != "" {
				x.Fail(at.At("select"), diag.New(diag.Rings, fmt.Sprintf("rings %s and %s both have the cluster types that are in no other ring", rest, r.Name)).
					Hinting("let only one of them have select: {}"))
			}
			rest = r.Name
		}
		if !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
		after[r.Name] = append(after[r.Name], r.After...)
		x.checkGates(&r.Gates, at.At("gates"), environment, up, len(p.After)+len(r.After) > 0)
		if len(p.Gates.Windows) > 0 && len(r.Gates.Windows) > 0 {
			x.checkOpen([]*model.Gates{&p.Gates, &r.Gates}, at.At("gates"))
		}
	}
	for i := range p.Rings {
		for j, name := range p.Rings[i].After {
			x.reference("ring", name, names, ref.At(fmt.Sprintf("[%d].after[%d]", i, j)))
		}
	}
	if cycle := findCycle(after); cycle != nil {
		d := diag.New(diag.Rings, fmt.Sprintf("rings of environment %s wait for each other: %s", environment, strings.Join(cycle, " after "))).
			Hinting("remove one of the after entries")
		for i := range p.Rings {
			if slices.Contains(cycle, p.Rings[i].Name) {
				d = d.At(ref.At(fmt.Sprintf("[%d].after", i)), "")
			}
		}
		x.Fail(ref, d)
	}
}

// OwnRings reports rings of the environment's own files that cannot be followed.
func (x *Stages) OwnRings(stages []model.Stage, env *model.Environment) {
	n := slices.IndexFunc(stages, func(s model.Stage) bool { return s.Name == env.Name })
	if n < 0 || env.Rings == nil {
		return
	}
	x.checkRings(&model.Promotion{After: stages[n].After, Rings: env.Rings, Gates: stages[n].Promotion.Gates}, model.Ref{Collection: "environments", Name: env.Name, Path: "rings"},
		env.Name, x.upstreams(stages)[env.Name])
}
