//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// flowEnvironment is an environment of a random platform, and its policies.
type flowEnvironment struct {
	name      string
	after     []string
	any       bool // require
	advance   string
	soak      time.Duration // in the stop before
	source    string        // of reports
	min       int           // percent
	maxFailed int
	rings     bool          // canary has the cluster type lab, and main what is left
	ringSoak  time.Duration // of main, in canary
	skippable bool          // the soak
	allow     bool          // errors, and what is kept because of them
	west      bool          // it has that cluster type
	clusters  int           // of each cluster type; 0 if the platform lists none
}

// flowStop is a unit that gets commits on its own: an environment, or a ring of an environment.
type flowStop struct {
	of   *flowEnvironment
	ring string
}

func (s flowStop) id() string {
	if s.ring == "" {
		return s.of.name
	}
	return s.of.name + "/" + s.ring
}

// covers reports whether a cluster type belongs to the stop.
func (s flowStop) covers(clusterType string) bool { return s.ring == s.of.ringOf(clusterType) }

func (e *flowEnvironment) ringOf(clusterType string) string {
	switch {
	case !e.rings:
		return ""
	case clusterType == "lab":
		return "canary"
	}
	return "main"
}

func (e *flowEnvironment) stops() []flowStop {
	if !e.rings {
		return []flowStop{{e, ""}}
	}
	return []flowStop{{e, "canary"}, {e, "main"}}
}

// clustersOf returns the clusters of a cluster type that must report. It returns one cluster
// without a name if the platform lists none.
func (e *flowEnvironment) clustersOf(clusterType string) []string {
	out := []string{""}[:1-min(e.clusters, 1)]
	for i := range e.clusters {
		out = append(out, fmt.Sprintf("%s-%s-%d", e.name, clusterType, i))
	}
	return out
}

// randomEnvironments are two to five environments in an order that after keeps.
func randomEnvironments(r *rand.Rand) []*flowEnvironment {
	var out []*flowEnvironment
	for i, name := range []string{"dev", "test", "stage", "prod", "edge"}[:2+r.IntN(4)] {
		e := &flowEnvironment{name: name, source: "report", min: 100}
		for _, before := range out {
			if len(e.after) < 2 && r.IntN(i+1) == 0 {
				e.after = append(e.after, before.name)
			}
		}
		if i > 0 && len(e.after) == 0 && r.IntN(5) > 0 {
			e.after = []string{out[i-1].name}
		}
		e.any = len(e.after) > 1 && r.IntN(2) == 0
		if r.IntN(2) == 0 {
			e.advance = []string{"latest", "match-upstream", "queue"}[r.IntN(3)]
		}
		if e.advance == "match-upstream" && len(e.after) == 0 {
			e.advance = ""
		}
		if len(e.after) > 0 && r.IntN(2) == 0 {
			e.soak = time.Duration(1+r.IntN(4)) * 30 * time.Minute
		}
		if r.IntN(4) == 0 {
			e.source = "none"
		}
		if r.IntN(3) == 0 {
			e.min, e.maxFailed = 50, r.IntN(2)
		}
		if e.rings = r.IntN(3) == 0; e.rings && r.IntN(2) == 0 {
			e.ringSoak = time.Hour
		}
		e.skippable, e.allow, e.west, e.clusters = r.IntN(2) == 0, r.IntN(4) == 0, r.IntN(2) == 0, r.IntN(3)
		out = append(out, e)
	}
	return out
}

// policy returns the environment's policy in CUE.
func (e *flowEnvironment) policy() string {
	var b strings.Builder
	list := func(field string, names []string) {
		if len(names) > 0 {
			fmt.Fprintf(&b, "\t%s: [\"%s\"]\n", field, strings.Join(names, `", "`))
		}
	}
	fmt.Fprintf(&b, "environments: %s: {\n", e.name)
	list("after", e.after)
	if e.any {
		b.WriteString("\trequire: \"any\"\n")
	}
	if e.advance != "" {
		fmt.Fprintf(&b, "\tadvance: %q\n", e.advance)
	}
	fmt.Fprintf(&b, "\tgates: rollout: {source: %q, min: \"%d%%\", maxFailed: %d}\n", e.source, e.min, e.maxFailed)
	if e.soak > 0 {
		fmt.Fprintf(&b, "\tgates: soak: for: \"%s\"\n", e.soak)
	}
	if e.skippable {
		list("promotion: skippable", []string{"soak"})
	}
	if e.allow {
		list("promotion: allow", []string{"errors", "kept"})
	}
	if e.rings {
		main := `{name: "main", select: {}, after: ["canary"]}`
		if e.ringSoak > 0 {
			main = fmt.Sprintf(`{name: "main", select: {}, after: ["canary"], gates: soak: for: "%s"}`, e.ringSoak)
		}
		fmt.Fprintf(&b, "\trings: [{name: \"canary\", select: name: \"lab\"}, %s]\n", main)
	}
	b.WriteString("}\n")
	return b.String()
}

// flowState is the state of a platform after the edits of people.
type flowState struct {
	release, west, note, side int
	typo, stray               bool // policies cannot be read, or nothing compiles
	conflict, empty           bool
	own                       map[string]flowOwn
}

// flowOwn is the state of an environment's own files.
type flowOwn struct {
	level          int
	north          bool // a cluster type more
	typo, conflict bool
}

func (s flowState) clone() flowState {
	own := map[string]flowOwn{}
	for name, o := range s.own {
		own[name] = o
	}
	s.own = own
	return s
}

// mended is the state without errors.
func (s flowState) mended() flowState {
	s = s.clone()
	s.typo, s.stray, s.conflict, s.empty = false, false, false, false
	for name, o := range s.own {
		o.typo, o.conflict = false, false
		s.own[name] = o
	}
	return s
}

// conflictText sets a value twice, so that assignments that it is for do not compile.
const conflictText = "configs: one: {match: {}, values: COLOUR: \"red\"}\nconfigs: other: {match: region: \"east\", values: COLOUR: \"blue\"}\n"

// files returns the files of the platform, by path.
func (s flowState) files(platform string, environments []*flowEnvironment) map[string]string {
	base := "package platform\n\n"
	policy, own := base, map[string]string{}
	targets := []string{}
	for _, e := range environments {
		policy += e.policy()
		targets = append(targets, e.name+": {}")
		o := s.own[e.name]
		types := []string{"east"}
		if e.west {
			types = append(types, "west")
		}
		if e.rings {
			types = append(types, "lab")
		}
		if o.north {
			types = append(types, "north")
		}
		text := base + fmt.Sprintf("configs: own: {match: {}, values: LEVEL: \"%s-%d\"}\n", e.name, o.level)
		for _, name := range types {
			text += fmt.Sprintf("clusterTypes: %s: {labels: region: %q, reconciler: \"flux\"}\n", name, name)
			for _, cluster := range e.clustersOf(name) {
				if cluster != "" {
					text += fmt.Sprintf("clusters: %q: clusterType: %q\n", cluster, name)
				}
			}
		}
		if o.typo {
			text += "configs: typo: {match: {}, valeus: {}}\n"
		}
		if o.conflict {
			text += strings.NewReplacer("one:", "\"own-one\":", "other:", "\"own-other\":", "COLOUR", "SHADE").Replace(conflictText)
		}
		own["environments/"+e.name+"/own.cue"] = text
	}
	slices.Sort(targets)
	platform = strings.Replace(platform, "{dev: {}, stage: {}, prod: {}}", "{"+strings.Join(targets, ", ")+"}", 1)
	if s.empty {
		platform = strings.Replace(platform, "deploymentTargets: {}\n\tclusterTypes: {}", "deploymentTargets: workload: \"none\"\n\tclusterTypes: {}", 1)
	}
	out := own
	out["platform.cue"], out["policy.cue"] = platform, policy
	out["release.cue"] = base + fmt.Sprintf("configs: release: {match: {}, values: RELEASE: \"v%d\"}\n", s.release)
	out["west.cue"] = base + fmt.Sprintf("configs: west: {match: region: \"west\", values: WEST: \"v%d\"}\n", s.west)
	out["note.cue"] = fmt.Sprintf("// Note %d.\n", s.note) + base
	out["side.cue"] = base + fmt.Sprintf("configs: side: {match: {}, values: SIDE: \"v%d\"}\n", s.side)
	if s.conflict {
		out["conflict.cue"] = base + conflictText
	}
	if s.typo {
		out["typo.cue"] = base + "environments: dev: promotoin: {}\n"
	}
	if s.stray {
		out["stray.cue"] = base + "environmints: {}\n"
	}
	return out
}
