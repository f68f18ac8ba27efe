package schedule

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

func manifests(text string) model.Value {
	var v model.Value
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic(err)
	}
	return v
}

func TestPins(t *testing.T) {
	git := model.Manifests{Git: &model.Git{Repo: "https://git", Branch: "main", Path: "./x", SecretRef: "s"}}
	oci := model.Manifests{OCI: &model.OCI{URL: "oci://r", Tag: "v1"}}
	helm := model.Manifests{Helm: &model.Helm{Repo: "https://charts", Chart: "c", Version: "1.0.0"}}
	kustomize := model.Manifests{Kustomize: &model.Kustomize{Git: &model.Git{Repo: "https://git", Tag: "v1"}, Path: "./x"}}
	for _, c := range []struct {
		name      string
		manifests model.Manifests
		pins      []string // version, or manifests as JSON, of policies a, b…
		want      string   // version and manifests
		problems  []string
	}{
		{"a version", git, []string{"2.0.0"}, `2.0.0 {"git":{"repo":"https://git","branch":"main","path":"./x","secretRef":"s"}}`, nil},
		{"a revision replaces the revision", git, []string{`{"git":{"tag":"v2"}}`}, `1.0.0 {"git":{"repo":"https://git","tag":"v2","path":"./x","secretRef":"s"}}`, nil},
		{"other fields stay or are replaced", git, []string{`{"git":{"path":"./y","repo":"https://fork"}}`},
			`1.0.0 {"git":{"repo":"https://fork","branch":"main","path":"./y","secretRef":"s"}}`, nil},
		{"a digest", oci, []string{`{"oci":{"digest":"sha256:1"}}`}, `1.0.0 {"oci":{"url":"oci://r","digest":"sha256:1"}}`, nil},
		{"a chart's version", helm, []string{`{"helm":{"version":"2.0.0"}}`}, `1.0.0 {"helm":{"repo":"https://charts","chart":"c","version":"2.0.0"}}`, nil},
		{"an overlay", kustomize, []string{`{"kustomize":{"git":{"branch":"next"},"path":"./y"}}`},
			`1.0.0 {"kustomize":{"git":{"repo":"https://git","branch":"next"},"path":"./y"}}`, nil},
		{"two pins that say the same", git, []string{`{"git":{"tag":"v2"}}`, `{"git":{"tag":"v2"}}`},
			`1.0.0 {"git":{"repo":"https://git","tag":"v2","path":"./x","secretRef":"s"}}`, nil},
		{"two pins that merge", git, []string{`{"git":{"tag":"v2"}}`, "2.0.0", `{"git":{"path":"./y"}}`},
			`2.0.0 {"git":{"repo":"https://git","tag":"v2","path":"./y","secretRef":"s"}}`, nil},
		{"two versions", git, []string{"2.0.0", "3.0.0"}, "", []string{
			`K2101 schedulingPolicies.a.pin: policies a and b pin version of w-x differently` +
				` (leave the assignments of one pin out of the other policies with except, pin the same, or write highest: true in each pin to take the highest version) [dev/one/w-x dev/two/w-x]`}},
		{"the highest of three", git, []string{"highest 2.9.0", "highest 2.10.0", "highest 2.10.0-rc.1"}, `2.10.0 {"git":{"repo":"https://git","branch":"main","path":"./x","secretRef":"s"}}`, nil},
		{"the highest tag, whole", git, []string{`highest {"git":{"tag":"v2.10.0"}}`, `highest {"git":{"tag":"v2.9.0","path":"./y"}}`},
			`1.0.0 {"git":{"repo":"https://git","tag":"v2.10.0","path":"./x","secretRef":"s"}}`, nil},
		{"the highest chart", helm, []string{`highest {"helm":{"version":"2.0.0"}}`, `highest {"helm":{"version":"10.0.0"}}`},
			`1.0.0 {"helm":{"repo":"https://charts","chart":"c","version":"10.0.0"}}`, nil},
		{"not all want the highest", git, []string{"highest 2.0.0", "3.0.0"}, "", []string{
			`K2101 schedulingPolicies.a.pin: policies a and b pin version of w-x differently` +
				` (leave the assignments of one pin out of the other policies with except, pin the same, or write highest: true in each pin to take the highest version) [dev/one/w-x dev/two/w-x]`}},
		{"no version to be the highest", git, []string{"highest 2.0.0", `highest {"git":{"branch":"next"}}`, "highest 3.0.0"}, "", []string{
			`K2101 schedulingPolicies.a.pin: policies a and c pin version of w-x differently` +
				` (leave the assignments of one pin out of the other policies with except, pin the same, or pin versions that highest: true can compare, such as 1.2.3 or v1.2.3) [dev/one/w-x dev/two/w-x]`}},
		{"two revisions", git, []string{`{"git":{"tag":"v2"}}`, "2.0.0", `{"git":{"branch":"v2"}}`}, "", []string{
			`K2101 schedulingPolicies.a.pin: policies a and c pin manifests.git.revision of w-x differently` +
				` (leave the assignments of one pin out of the other policies with except, pin the same, or write highest: true in each pin to take the highest version) [dev/one/w-x dev/two/w-x]`}},
		{"two revisions in one pin", git, []string{`{"git":{"tag":"v2","branch":"main"}}`}, "", []string{
			`K2102 schedulingPolicies.a.pin.manifests.git.tag: policy a pins two revisions of one source: manifests.git.branch: "main" and manifests.git.tag: "v2"` +
				` (leave one of them) [dev/one/w-x dev/two/w-x]`}},
		{"another source", helm, []string{`{"git":{"tag":"v2"}}`}, "", []string{
			`K2102 schedulingPolicies.a.pin.manifests.git.tag: policy a pins manifests.git.tag, which w-x does not have` +
				` (what can be pinned of it: manifests.helm.version, version) [dev/one/w-x dev/two/w-x]`}},
		{"another source of an overlay", kustomize, []string{`{"kustomize":{"oci":{"tag":"v2"}}}`}, "", []string{
			`K2102 schedulingPolicies.a.pin.manifests.kustomize.oci.tag: policy a pins manifests.kustomize.oci.tag, which w-x does not have` +
				` (what can be pinned of it: manifests.kustomize.git.branch, manifests.kustomize.git.commit, manifests.kustomize.git.repo,` +
				` manifests.kustomize.git.semver, manifests.kustomize.git.tag, manifests.kustomize.path, version) [dev/one/w-x dev/two/w-x]`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := targetOf("x")
			target.Version, target.Manifests = "1.0.0", c.manifests
			before := fmt.Sprintf("1.0.0 %s", model.DigestOf(c.manifests))
			env := &model.Environment{Name: "dev",
				ClusterTypes: []model.ClusterType{clusterTypeOf("one"), clusterTypeOf("two")},
				Workloads:    []model.Workload{workload("w", "team", nil, target)}}
			for i, text := range c.pins {
				p := policy(string(rune('a'+i)), where(), where())
				text, highest := strings.CutPrefix(text, "highest ")
				p.Pin = &model.Pin{Version: text, Highest: highest}
				if text[0] == '{' {
					v := manifests(text)
					p.Pin = &model.Pin{Manifests: &v, Highest: highest}
				}
				env.SchedulingPolicies = append(env.SchedulingPolicies, p)
			}
			s, ds := assign(t, env)
			equal(t, "problems", lines(ds), c.problems)
			for _, a := range s.Assignments {
				if a.Failed != (c.problems != nil) {
					t.Errorf("failed: %v", a.Failed)
				}
				b, err := json.Marshal(a.Manifests)
				if got := a.Version + " " + string(b); err != nil || c.want != "" && got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			}
			if after := fmt.Sprintf("1.0.0 %s", model.DigestOf(c.manifests)); after != before {
				t.Error("the pin changed the model")
			}
		})
	}
}

// A pin moves the assignments of its own policy only, and names every policy
// that disagrees.
func TestPinOfOneClusterType(t *testing.T) {
	env := &model.Environment{Name: "dev",
		ClusterTypes: []model.ClusterType{clusterTypeOf("one"), clusterTypeOf("two"), clusterTypeOf("three")},
		Workloads:    []model.Workload{workload("w", "team", nil, targetOf("x"))}}
	for i, types := range []model.Selector{where(), where("name=one"), where("name=two"), where("name=two")} {
		p := policy(fmt.Sprint("p", i), where(), types)
		if i > 0 {
			p.Pin = &model.Pin{Version: fmt.Sprint("1.0.", i)}
		}
		env.SchedulingPolicies = append(env.SchedulingPolicies, p)
	}
	s, ds := assign(t, env)
	equal(t, "assignments", ids(s), []string{"one/w-x", "three/w-x", "two/w-x!"})
	if v := s.Assignments[0].Version + s.Assignments[1].Version; v != "1.0.1" {
		t.Errorf("versions %s", v)
	}
	if len(ds) != 1 || len(ds[0].Sites) != 2 || ds[0].Sites[1].Note != `version: "1.0.3" (policy p3)` {
		t.Errorf("%+v", ds)
	}
}
