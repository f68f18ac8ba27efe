package check

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/window"
	"github.com/kalypso-io/kalypso/internal/git"
)

// checkPolicies reports policies of promotion that would block every commit, and ambiguous
// policies.
func (x *Declarations) checkPolicies(declarations []model.Declaration) {
	up := x.upstreams(declarations)
	var soaking []string // environments
	for i := range declarations {
		s := &declarations[i]
		ref, p := model.Ref{Collection: "environments", Name: s.Name}, &s.Promotion
		if x.Invalid[ref] {
			continue // unknown fields would look missing
		}
		if len(p.After) == 0 && p.Any {
			x.Fail(ref.At("require"),
				diag.New(diag.NoUpstream,
					"nothing comes before environment "+s.Name+", of which any one could be enough").
					Hinting("name the environments in after, or remove require"))
		}
		if len(p.After) == 0 && p.Advance == model.MatchUpstream {
			x.Fail(ref.At("advance"),
				diag.New(diag.NoUpstream,
					"nothing comes before environment "+s.Name+", whose commit it could match").
					Hinting("name an environment in after, or choose another way to advance"))
		}
		if g := s.GitOps; g != nil && g.Branch != "" {
			x.checkBranch(g.Branch, ref.At("gitops.branch"))
		}
		if p.Advance == model.Batch && p.Every == 0 {
			x.Fail(ref.At("advance"),
				diag.New(diag.StopsNothing,
					"every commit comes at once: every is no time").Hinting("write how long, as 24h"))
		}
		if p.Source != nil {
			if _, err := git.BranchRef(p.Source.Branch); err != nil {
				x.Fail(ref.At("source.branch"), diag.New(diag.WrongValue, err.Error()))
			}
		}
		x.checkGates(&p.Gates, ref.At("gates"), s.Name, up[s.Name], len(p.After) > 0)
		x.checkRings(p, ref.At("rings"), s.Name, up[s.Name])
		x.checkOwnChanges(&p.OwnChanges, ref.At("ownChanges"), s.Name)
		if soaksOwn(p) && !x.Invalid[ref] {
			soaking = append(soaking, s.Name)
		}
	}
	x.warnOfSoak(soaking)
	x.checkFormerly(declarations)
}

// checkFormerly reports earlier names that several environments have or had.
func (x *Declarations) checkFormerly(declarations []model.Declaration) {
	names := map[string]string{} // from names to the environments that have or had them
	for i := range declarations {
		names[declarations[i].Name] = declarations[i].Name
	}
	for i := range declarations {
		s := &declarations[i]
		ref := model.Ref{Collection: "environments", Name: s.Name, Path: "formerly"}
		for _, name := range s.Formerly {
			if name == s.Name || names[name] == s.Name {
				x.Fail(ref, diag.New(diag.WrongValue,
					"formerly of environment "+s.Name+" has "+name+
						" twice, or its own name").Hinting("list each earlier name once"))
				continue
			}
			if other, taken := names[name]; taken {
				what := "there is an environment " + name
				if other != name {
					what = "environment " + other + " was " + name
				}
				x.Fail(ref, diag.New(diag.WrongValue,
					what+", so that "+s.Name+
						" cannot have been it").Hinting("remove formerly, or the other environment"))
			}
			names[name] = s.Name
		}
	}
}

// soaksOwn reports whether rings wait for own files to soak although the base has no ownChanges.
func soaksOwn(p *model.Promotion) bool {
	return !p.OwnChanges.Written &&
		slices.ContainsFunc(p.Rings, func(r model.Ring) bool { return p.SoaksOwn(&r) })
}

// warnOfSoak warns once that changes of the own files of some environments soak in rings. They
// did not soak before ownChanges existed.
func (x *Declarations) warnOfSoak(environments []string) {
	if len(environments) == 0 {
		return
	}
	what := "environment " + environments[0]
	if len(environments) > 1 {
		what = "environments " + strings.Join(environments, ", ")
	}
	ref := model.Ref{Collection: "environments", Name: environments[0], Path: "rings"}
	x.Report(diag.New(diag.OwnChangesSoak,
		"changes of the own files of "+what+" soak in each ring, as commits of the platform do").
		At(ref, "").On(ref.String()).
		Hinting(`write ownChanges: "rings" to confirm this, or ownChanges: "at-once" to let them go on as before`))
}

// checkOwnChanges reports exceptions without effect, because all changes are immediate anyway.
func (x *Declarations) checkOwnChanges(o *model.OwnChanges, ref model.Ref, environment string) {
	if o.AtOnce && o.Clusters {
		x.Fail(ref.At("atOnce"), diag.New(diag.StopsNothing, "all changes of the own files of "+
			"environment "+environment+" go at once already").
			Hinting(`remove atOnce, or write default: "rings"`))
	}
}

// checkBranch reports a branch whose name is invalid in git, or that promotion needs for
// itself.
func (x *Declarations) checkBranch(name string, ref model.Ref) {
	if _, err := git.BranchRef(name); err != nil {
		x.Fail(ref, diag.New(diag.WrongValue, err.Error()))
	} else if strings.HasPrefix(name, "kalypso/") {
		x.Fail(ref, diag.New(diag.WrongValue, "branches whose names begin with kalypso/ are those that "+
			"promotion proposes changes from").
			Hinting("choose another branch for the environment's tree"))
	}
}

// checkHTTP reports a token that would be sent unencrypted.
func (x *Declarations) checkHTTP(g *model.HTTPGate, ref model.Ref) {
	u, err := url.Parse(g.URL)
	if err != nil || u.Scheme != "http" || g.TokenFrom == "" ||
		slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname()) {
		return
	}
	x.Fail(ref.At("url"),
		diag.New(diag.WrongValue, "the token of $"+g.TokenFrom+" would be sent without encryption").
			Hinting("use https, or leave tokenFrom out"))
}

// upstream has the environments before an environment. partly reports whether some of them are
// invalid, so that there may be more.
type upstream struct {
	names  []string
	partly bool
}

func (x *Declarations) upstreams(declarations []model.Declaration) map[string]upstream {
	after := map[string][]string{}
	for _, s := range declarations {
		if !x.Invalid[model.Ref{Collection: "environments", Name: s.Name}] {
			after[s.Name] = s.After
		}
	}
	out := map[string]upstream{}
	for _, s := range declarations {
		var up upstream
		for todo := slices.Clone(s.After); len(todo) > 0; todo = todo[1:] {
			name := todo[0]
			if name == s.Name || slices.Contains(up.names, name) {
				continue
			}
			before, known := after[name]
			up.names, up.partly = append(up.names, name), up.partly || !known
			todo = append(todo, before...)
		}
		out[s.Name] = up
	}
	return out
}

// checkGates reports gates that cannot pass. follows reports whether an environment or a ring
// comes before the owner of the gates.
func (x *Declarations) checkGates(g *model.Gates, ref model.Ref, environment string, up upstream,
	follows bool) {
	for i := range g.HTTP {
		x.checkHTTP(&g.HTTP[i], ref.At(fmt.Sprintf("http[%d]", i)))
	}
	x.checkEffect(g, ref)
	x.checkOpen([]*model.Gates{g}, ref)
	if g.Soak != nil {
		x.checkSoak(g.Soak.Environment, ref.At("soak"), environment, up, follows)
	}
	for i, w := range g.Windows {
		var wrong *window.Error
		if _, err := window.Parse(w.From, w.To, w.TZ); errors.As(err, &wrong) {
			at := ref.At(fmt.Sprintf("windows[%d]", i)).At(wrong.Field)
			d := diag.New(diag.BadWindow, "the window cannot be used: "+wrong.Why)
			if wrong.Field == "tz" {
				d = d.Hinting(`use the name that the IANA gives it, such as "Europe/Berlin"`)
			}
			x.Fail(at, d)
		}
	}
}

// checkEffect reports gates that can never stop a commit, and gates that no commit ever passes.
func (x *Declarations) checkEffect(g *model.Gates, ref model.Ref) {
	stopsNothing := func(at model.Ref, why, hint string) {
		x.Fail(at, diag.New(diag.StopsNothing, "the gate can stop nothing: "+why).Hinting(hint))
	}
	if g.Soak != nil && g.Soak.For == 0 {
		stopsNothing(ref.At("soak.for"), "no time has to pass",
			"write how long, as 24h, or remove the gate")
	}
	if g.Budget != nil && g.Budget.Assignments == nil && g.Budget.ClusterTypes == nil &&
		g.Budget.Clusters == nil {
		stopsNothing(ref.At("budget"), "it has no bound", "write how many assignments , clusterTypes "+
			"or clusters a step may change, or remove the gate")
	}
	team := func(name string) bool { return strings.Contains(name, "/") } // its members are unknown
	for i, a := range []*model.ApprovalsGate{g.Approvals, g.OwnApprovals} {
		at := []string{"approvals", "own.approvals"}[i]
		if a == nil || a.From == nil || slices.ContainsFunc(a.From, team) {
			continue
		}
		people := map[string]bool{}
		for _, name := range a.From {
			people[strings.ToLower(name)] = true
		}
		if len(people) < a.Count {
			x.Fail(ref.At(at),
				diag.New(diag.NeverMoves,
					fmt.Sprintf("%d must approve, and only %d may", a.Count, len(people))).
					Hinting("name more people in from, or lower count"))
		}
	}
}

// checkOpen reports windows that never let a commit pass.
func (x *Declarations) checkOpen(gates []*model.Gates, ref model.Ref) {
	var deny []window.Window
	var allow [][]window.Window
	for _, g := range gates {
		var own []window.Window
		for _, w := range g.Windows {
			parsed, err := window.Parse(w.From, w.To, w.TZ)
			switch {
			case err != nil:
				return // checkGates reports it
			case w.Deny:
				deny = append(deny, parsed)
			default:
				own = append(own, parsed)
			}
		}
		if len(own) > 0 {
			allow = append(allow, own)
		}
	}
	// Search from a time long ago, because vet has no clock.
	if at, _ := window.Opens(deny, allow, time.Unix(0, 0)); at.IsZero() && len(deny)+len(allow) > 0 {
		x.Fail(ref.At("windows"),
			diag.New(diag.BadWindow, "the windows leave no time in which a commit may come").
				Hinting("a commit comes in none of those with deny and, where there are others, within one "+
					"of them"))
	}
}

func (x *Declarations) checkSoak(in string, ref model.Ref, environment string, up upstream,
	follows bool) {
	switch {
	case in == "" && !follows:
		x.Fail(ref, diag.New(diag.NoUpstream,
			"a commit comes to environment "+environment+" first, and has run nowhere before").
			Hinting("name environments in after, or give the soak to the rings that come after others"))
	case in != "" && !slices.Contains(x.names("environments"), in):
		x.reference("environment", in, x.names("environments"), ref.At("environment"))
	case in != "" && !slices.Contains(up.names, in) && !up.partly:
		hint := "choose one of those that do: " +
			strings.Join(slices.Sorted(slices.Values(up.names)), ", ")
		if len(up.names) == 0 {
			hint = "name it in after"
		}
		x.Fail(ref.At("environment"),
			diag.New(diag.NoUpstream,
				fmt.Sprintf("environment %s does not come before %s, so a commit need not have run there", in,
					environment)).
				Hinting(hint))
	}
}

// checkRings reports rings with the same name, rings that wait for each other or for a missing
// ring, and errors in the rings' gates.
func (x *Declarations) checkRings(p *model.Promotion, ref model.Ref, environment string,
	up upstream) {
	var names []string
	after, rest := map[string][]string{}, ""
	for i := range p.Rings {
		r, at := &p.Rings[i], ref.At(fmt.Sprintf("[%d]", i))
		if slices.Contains(names, r.Name) {
			x.Fail(at.At("name"),
				diag.New(diag.Rings, fmt.Sprintf("environment %s has two rings %s", environment, r.Name)).
					Hinting("give each a name of its own"))
		}
		if r.Select.Op == model.OpAll {
			if rest != "" {
				x.Fail(at.At("select"), diag.New(diag.Rings,
					fmt.Sprintf("rings %s and %s both have the cluster types that are in no other ring", rest,
						r.Name)).
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
		d := diag.New(diag.Rings, fmt.Sprintf("rings of environment %s wait for each other: %s",
			environment, strings.Join(cycle, " after "))).
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
func (x *Declarations) OwnRings(declarations []model.Declaration, env *model.Environment) {
	n := slices.IndexFunc(declarations, func(s model.Declaration) bool { return s.Name == env.Name })
	if n < 0 || env.Rings == nil {
		return
	}
	x.checkRings(&model.Promotion{After: declarations[n].After, Rings: env.Rings,
		Gates: declarations[n].Promotion.Gates},
		model.Ref{Collection: "environments", Name: env.Name, Path: "rings"},
		env.Name, x.upstreams(declarations)[env.Name])
	p := declarations[n].Promotion
	if p.Rings = env.Rings; len(declarations[n].Promotion.Rings) == 0 && soaksOwn(&p) {
		x.warnOfSoak([]string{env.Name})
	}
}

// Declarations checks environments against each other, and the policies by which commits reach
// them.
type Declarations struct{ *Entities }

// Folders reports folders of environments without an entry.
func (x *Declarations) Folders(p *source.Platform) {
	names := x.names("environments")
	for _, folder := range p.Folders {
		if slices.Contains(names, folder) {
			continue
		}
		hint := fmt.Sprintf("declare it in the base: environments: %s: {}", model.Label(folder))
		if !model.IsName(folder) {
			hint = "rename the folder: the name of an environment has at most 63 lower case letters, " +
				"digits and dashes"
		}
		x.Report(diag.New(diag.UndeclaredEnvironment,
			fmt.Sprintf("environments/%s is no environment: the base does not declare it", folder)).
			In(p.FirstFile(folder), "").Hinting(hint))
	}
}

// Declared reports entries that wait for a missing environment, entries that wait for each
// other, and policies that cannot be followed. Entries with errors are then invalid.
func (x *Declarations) Declared(declarations []model.Declaration) {
	names := x.names("environments")
	after := map[string][]string{}
	for _, s := range declarations {
		after[s.Name] = s.After
		for i, name := range s.After {
			x.reference("environment", name, names,
				model.Ref{Collection: "environments", Name: s.Name, Path: fmt.Sprintf("after[%d]", i)})
		}
	}
	if cycle := findCycle(after); cycle != nil {
		d := diag.New(diag.EnvironmentCycle,
			"environments wait for each other: "+strings.Join(cycle, " after ")).
			Hinting("remove one of the after entries")
		for _, name := range cycle[1:] {
			d = d.At(model.Ref{Collection: "environments", Name: name, Path: "after"}, "")
		}
		x.Fail(model.Ref{Collection: "environments", Name: cycle[0]}, d)
	}
	x.checkPolicies(declarations)
	for i := range declarations {
		s := &declarations[i]
		s.Invalid = x.Invalid[model.Ref{Collection: "environments", Name: s.Name}]
	}
}

// Own reports environments that only the files of one environment declare. Only declarations of
// the base count, for all environments.
func (x *Declarations) Own(declarations []model.Declaration, name string) {
	if declarations == nil {
		return
	}
	for _, key := range x.names("environments") {
		if model.IsName(key) &&
			!slices.ContainsFunc(declarations, func(s model.Declaration) bool { return s.Name == key }) {
			ref := model.Ref{Collection: "environments", Name: key}
			x.Report(diag.New(diag.UndeclaredEnvironment,
				fmt.Sprintf("environment %s is declared in the files of %s only", key,
					name)).InEach(x.Positions.Of(ref)...).On(ref.String()).
				Hinting("declare it in the base, which all environments share"))
		}
	}
}

// findCycle returns the nodes of a cycle, with the first one again at the end. It returns nil
// if there is no cycle. The result does not depend on the order of the map.
func findCycle(edges map[string][]string) []string {
	done := map[string]bool{}
	var path []string
	var visit func(n string) []string
	visit = func(n string) []string {
		if i := slices.Index(path, n); i >= 0 {
			return append(slices.Clone(path[i:]), n)
		}
		if done[n] {
			return nil
		}
		path = append(path, n)
		for _, m := range edges[n] {
			if c := visit(m); c != nil {
				return c
			}
		}
		path = path[:len(path)-1]
		done[n] = true
		return nil
	}
	for _, n := range slices.Sorted(maps.Keys(edges)) {
		if c := visit(n); c != nil {
			return c
		}
	}
	return nil
}
