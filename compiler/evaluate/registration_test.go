package evaluate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/evaluate/registration"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/archive"
)

// repositories are the pinned contents of registrations, by their names.
type repositories map[string]*archive.Tree

func (r repositories) Content(_ context.Context, of *model.Registration) (*registration.PinnedContent, []diag.Diagnostic) {
	tree, ok := r[of.Name]
	if !ok {
		return nil, []diag.Diagnostic{diag.New(diag.NotLocked, of.Git.Repo+" is not locked")}
	}
	return &registration.PinnedContent{
		Revision: strings.Repeat("0a1b2c3d", 5), Content: model.DigestBytes(fmt.Append(nil, *tree)),
		Files: func() (*archive.Tree, []diag.Diagnostic, error) { return tree, nil, nil },
	}, nil
}

// withRegistered evaluates environment dev with the declarations and with registrations that
// refer to the files of an archive, <registration>/<path>. Files that begin with "refused: "
// have no content. It returns a line for each diagnostic. It also checks that evaluation in
// workers has the same result.
func withRegistered(t *testing.T, declarations, registered string, c memo.Cache) (*Package, []string) {
	t.Helper()
	pkg, ds := evaluateRegistered(t, declarations, registered, Options{Cache: c})
	pool := newPool(t)
	in, same := evaluateRegistered(t, declarations, registered, Options{Workers: pool})
	if !slices.Equal(ds, same) || !slices.Equal(model.Encode(pkg.Model.Workloads), model.Encode(in.Model.Workloads)) || !slices.Equal(model.Encode(pkg.Model.Configs), model.Encode(in.Model.Configs)) {
		t.Errorf("got %q %+v, in workers %q %+v", ds, pkg.Model, same, in.Model)
	}
	return pkg, ds
}

func evaluateRegistered(t *testing.T, declarations, registered string, o Options) (*Package, []string) {
	t.Helper()
	repos := repositories{}
	for _, f := range txtar.Parse([]byte(registered)).Files {
		name, path, _ := strings.Cut(f.Name, "/")
		if repos[name] == nil {
			repos[name] = &archive.Tree{Files: map[string]archive.File{}, Refused: map[string]string{}}
		}
		if why, refused := strings.CutPrefix(string(f.Data), "refused: "); refused {
			repos[name].Refused[path] = strings.TrimSpace(why)
			continue
		}
		repos[name].Files[path] = archive.File{Data: f.Data}
	}
	p := open(t, map[string]string{"environments/dev/dev.cue": "package platform\n\n" + declarations})
	o.Registry = repos
	pkg, ds, err := Environment(t.Context(), p, "dev", []model.Declaration{{Name: "dev"}}, o)
	if err != nil {
		t.Fatal(err)
	}
	diag.Resolve(ds, pkg.Model.Positions)
	var out []string
	for _, d := range ds {
		line := fmt.Sprintf("%s %s", d.Code, d.Message)
		for _, s := range d.Sites {
			line += fmt.Sprintf(" @%s:%d:%d", s.Position.File, s.Position.Line, s.Position.Column)
		}
		out = append(out, line)
	}
	return pkg, out
}

const registrations = `
registrations: {
	app: {workspace: "team", git: {repo: "https://git.example.test/app", branch: "main", path: "./deploy"}}
	limits: {
		provides: ["configs"]
		match: region: "east"
		layers: max: 3
		git: {repo: "https://git.example.test/limits", tag: "v1"}
	}
}
`

func TestRegistered(t *testing.T) {
	pkg, ds := withRegistered(t, registrations, `
-- app/deploy/app.cue --
package app

workloads: shop: {
	labels: tier: "front"
	deploymentTargets: {
		live: {environment: "dev", manifests: git: {repo: "https://git.example.test/app", branch: "main"}}
		other: {environment: "stage", manifests: git: {repo: "https://git.example.test/app", branch: "main"}}
	}
}
-- app/deploy/jobs.yaml --
apiVersion: v1
kind: ConfigMap
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: Workload
metadata:
  name: jobs
  labels:
    tier: back
spec:
  deploymentTargets:
    - name: night
      environment: dev
      labels:
        purpose: batch
      manifests:
        repo: https://git.example.test/jobs
        branch: dev
        path: ./night
-- limits/configs.cue --
package limits

import "kalypso.io/schema"

configs: "team-limits": {match: tier: "front", layer: 2, values: LIMIT: 3}
configs: "team-name": {
	#assignment: schema.#Assignment
	match: {}
	values: NAME: "\(#assignment.workload) here"
}
`, nil)
	want := []string{"K1301 there is no environment stage @app@0a1b2c3d0a1b/deploy/app.cue:7:24"}
	if !slices.Equal(ds, want) {
		t.Errorf("got %q, want %q", ds, want)
	}
	m := pkg.Model
	if len(m.Workloads) != 2 || m.Workloads[0].Name != "jobs" {
		t.Fatalf("got %+v", m.Workloads)
	}
	target := m.Workloads[0].Targets[0]
	if m.Workloads[0].Workspace != "team" || target.FullName != "jobs-night" || target.Manifests.Git.Path != "./night" || target.Labels["tier"] != "back" || target.Labels["purpose"] != "batch" {
		t.Errorf("got %+v", m.Workloads[0])
	}
	if at := m.Positions.Of(m.Workloads[0].TargetRef("night").At("environment")); len(at) != 1 || at[0] != (model.Position{File: "app@0a1b2c3d0a1b/deploy/jobs.yaml", Line: 13, Column: 20}) {
		t.Errorf("night is at %v", at)
	}
	if len(m.Configs) != 2 || m.Configs[0].Name != "team-limits" || m.Configs[0].Layer != 2 || m.Configs[0].Invalid {
		t.Fatalf("got %+v", m.Configs)
	}
	if got := m.Configs[0].Match.String(); !strings.Contains(got, "front") || !strings.Contains(got, "east") {
		t.Errorf("the match is %s", got)
	}
	made, err := pkg.Apply(t.Context(), []function.Call{{
		Entity: model.Ref{Collection: "configs", Name: "team-name"},
		Facts:  model.StructOf(model.Field{Name: "workload", Value: model.StringOf("shop")}),
	}})
	if err != nil || len(made[0].Diagnostics) > 0 {
		t.Fatal(err, made)
	}
	if name, ok := made[0].Values.Field("NAME"); !ok || name.Final.Text() != "shop here" {
		t.Errorf("got %+v", made[0].Values)
	}
}

// TestRegisteredErrors checks that an error in a registration has its position in the
// registration, and does not affect the platform's own entities.
func TestRegisteredErrors(t *testing.T) {
	const head = "-- app/deploy/app.cue --\npackage app\n\n"
	for name, c := range map[string]struct {
		platform, registered string
		want                 []string
		invalid              []string
		unknown              bool
	}{
		"not locked": {
			want: []string{"K3011 https://git.example.test/app is not locked @environments/dev/dev.cue:4:27"}, invalid: []string{"registrations.app"}, unknown: true,
		},
		"no folder": {
			registered: "-- app/other/x.cue --\npackage x\n",
			want:       []string{"K1305 the repository of registration app has no folder deploy @environments/dev/dev.cue:4:27"},
			invalid:    []string{"registrations.app"}, unknown: true,
		},
		"nothing in it": {
			registered: "-- app/deploy/README.md --\nhello\n",
			want:       []string{"K1305 folder deploy of the repository of registration app brings nothing @environments/dev/dev.cue:4:27"},
			invalid:    []string{"registrations.app"}, unknown: true,
		},
		"a file without content": {
			registered: head + "-- app/deploy/more.cue --\nrefused: is a link that leaves\n-- app/deploy/notes.md --\nrefused: is a link that leaves\n",
			want:       []string{"K1305 deploy/more.cue of the repository of registration app is a link that leaves @environments/dev/dev.cue:4:27"},
			invalid:    []string{"registrations.app"}, unknown: true,
		},
		"an import without content": {
			registered: head + "-- app/cue.mod/module.cue --\nmodule: \"a.example@v0\"\nlanguage: version: \"v0.15.0\"\n-- app/lib/x.cue --\nrefused: is a link that leaves\n",
			want:       []string{"K1305 lib/x.cue of the repository of registration app is a link that leaves @environments/dev/dev.cue:4:27"},
			invalid:    []string{"registrations.app"}, unknown: true,
		},
		"too large": {
			registered: head + "-- app/deploy/more.cue --\npackage app\n//" + strings.Repeat("x", source.MaxEmbedded) + "\n-- app/deploy/notes.md --\n" + strings.Repeat("x", source.MaxEmbedded+1) + "\n",
			want:       []string{"K1305 deploy/more.cue of the repository of registration app has more than 16 MiB @environments/dev/dev.cue:4:27"},
			invalid:    []string{"registrations.app"}, unknown: true,
		},
		"syntax": {
			registered: head + "workloads: {\n",
			want:       []string{"K1001 { is not closed @app@0a1b2c3d0a1b/deploy/app.cue:3:12"},
			invalid:    []string{"registrations.app"}, unknown: true,
		},
		"misspelt": {
			registered: head + "workloads: shop: {deploymentTarget: {}}\n",
			want:       []string{"K1102 unknown field deploymentTarget @app@0a1b2c3d0a1b/deploy/app.cue:3:19"},
			invalid:    []string{"workloads.shop"}, unknown: true,
		},
		"workspace of another": {
			registered: head + "workloads: shop: workspace: \"mine\"\n",
			want:       []string{"K1305 workload shop is of workspace mine, and registration app brings those of team @app@0a1b2c3d0a1b/deploy/app.cue:3:29"},
			invalid:    []string{"workloads.shop"}, unknown: true,
		},
		"more than it provides": {
			registered: head + "workloads: shop: {}\nconfigs: x: match: {}\n",
			want:       []string{"K1305 registration app does not provide configs @app@0a1b2c3d0a1b/deploy/app.cue:4:10"},
		},
		"policies": {
			registered: head + "schedulingPolicies: x: {}\n",
			want:       []string{"K1305 registration app does not provide schedulingPolicies @app@0a1b2c3d0a1b/deploy/app.cue:3:21"},
		},
		"twice": {
			platform:   `workloads: shop: workspace: "mine"`,
			registered: head + "workloads: shop: {}\n",
			want:       []string{"K1305 registration app brings workloads.shop, which the platform declares itself @app@0a1b2c3d0a1b/deploy/app.cue:3:12 @environments/dev/dev.cue:6:12"},
			invalid:    []string{"registrations.app"}, unknown: true,
		},
		"two packages": {
			registered: head + "-- app/deploy/other.cue --\npackage other\n",
			want:       []string{"K1305 the folder of registration app has two packages, app and other @app@0a1b2c3d0a1b/deploy/app.cue:1:1 @app@0a1b2c3d0a1b/deploy/other.cue:1:1"},
			invalid:    []string{"registrations.app"}, unknown: true,
		},
		"embeds what is outside": {
			registered: "-- app/deploy/app.cue --\n@extern(embed)\npackage app\n\nworkloads: shop: description: _ @embed(file=\"../../../../etc/hostname\", type=text)\n",
			want:       []string{"K1002 @embed cannot read a file of another folder @app@0a1b2c3d0a1b/deploy/app.cue:4:33"},
			invalid:    []string{"registrations.app"}, unknown: true,
		},
		"another kind": {
			registered: "-- app/deploy/x.yaml --\napiVersion: scheduler.kalypso.io/v1alpha1\nkind: SchedulingPolicy\n",
			want:       []string{"K1305 a registration brings Workloads of scheduler.kalypso.io, not SchedulingPolicy @app@0a1b2c3d0a1b/deploy/x.yaml:1:1"},
			invalid:    []string{"registrations.app"}, unknown: true,
		},
		"a YAML field": {
			registered: "-- app/deploy/x.yaml --\napiVersion: scheduler.kalypso.io/v1alpha1\nkind: Workload\nmetadata:\n  name: x\nspec:\n  deploymentTargets:\n  - name: y\n    enviroment: dev\n    manifests: {repo: \"https://x/y\", branch: main}\n",
			want:       []string{"K1305 the deployment target has no field enviroment @app@0a1b2c3d0a1b/deploy/x.yaml:8:5"},
			invalid:    []string{"registrations.app"}, unknown: true,
		},
		"no YAML": {
			registered: "-- app/deploy/x.yaml --\napiVersion: scheduler.kalypso.io/v1alpha1\nkind: [\n",
			want:       []string{"K1001 the file is not valid YAML: did not find expected node content @app@0a1b2c3d0a1b/deploy/x.yaml:2:1"},
			invalid:    []string{"registrations.app"}, unknown: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			of := strings.Replace(registrations[:strings.Index(registrations, "\tlimits")]+"}\n", "\nregistrations", "registrations", 1)
			pkg, ds := withRegistered(t, of+c.platform, c.registered, nil)
			if !slices.Equal(ds, c.want) {
				t.Errorf("got  %q\nwant %q", ds, c.want)
			}
			for _, s := range c.invalid {
				collection, entity, _ := strings.Cut(s, ".")
				if !pkg.Model.Invalid[model.Ref{Collection: collection, Name: entity}] {
					t.Errorf("%s is healthy: %v", s, pkg.Model.Invalid)
				}
			}
			if pkg.Model.Incomplete != c.unknown {
				t.Errorf("uncertain: %v", pkg.Model.Incomplete)
			}
		})
	}
}

// TestClaims checks conflicts in which several declare one name. The platform gets the name, or
// the only registration whose names cover it, and only the other entities fail. If no one gets
// the name, all fail. The order of the registrations' names does not matter.
func TestClaims(t *testing.T) {
	kinds := map[string]struct{ name, platform, first, second string }{
		"workloads": {"shop", `workloads: shop: {workspace: "mine", deploymentTargets: t: _at}`, `workloads: shop: deploymentTargets: t: _at`, `workloads: shop: {}`},
		"targets": {
			"a-b-c", `workloads: a: {workspace: "mine", deploymentTargets: "b-c": _at}`, `workloads: "a-b": deploymentTargets: c: _at`,
			`workloads: a: deploymentTargets: "b-c": _at`,
		},
		"configs": {"shop", `configs: shop: {match: {}, values: A: "p"}`, `configs: shop: {match: {}, values: A: "1"}`, `configs: shop: {match: {}, values: A: "2"}`},
	}
	const at = `
_at: {environment: "dev", manifests: git: {repo: "https://git.example.test/app", branch: "main"}}
`
	for kind, c := range kinds {
		for _, order := range [][2]string{{"east", "west"}, {"west", "east"}} {
			first, second := order[0], order[1]
			for who, names := range map[string][3]string{ // by owner: the names of both, other declarations
				"first":    {c.name, second, ""},
				"second":   {first, c.name[:2] + "*", ""},
				"nobody":   {first, second, ""},
				"both":     {"*", c.name, ""},
				"platform": {c.name, c.name, c.platform},
				"unread":   {first, second, `registrations: lost: {names: ["` + c.name + `"], git: {repo: "https://git.example.test/app", tag: "v1"}}`},
			} {
				t.Run(kind+" "+who+" "+first, func(t *testing.T) {
					declare := func(registration, names string) string {
						return fmt.Sprintf("registrations: %s: {names: [%q], workspace: \"mine\", provides: [\"workloads\", \"configs\"], git: {repo: \"https://git.example.test/app\", tag: \"v1\"}}\n", registration, names)
					}
					archive := func(registration, text string) string {
						return fmt.Sprintf("-- %s/app.cue --\npackage app\n%s%s\nworkloads: \"%[1]s\": deploymentTargets: own: _at\n", registration, at, text)
					}
					pkg, ds := evaluateRegistered(t, declare(first, names[0])+declare(second, names[1])+names[2]+at, archive(first, c.first)+archive(second, c.second), Options{})
					has := holderOf(pkg.Model, c.name)
					want := map[string]string{"first": first, "second": second, "platform": "platform"}[who]
					if has != want {
						t.Errorf("%q has it, and %q should: %q", has, want, ds)
					}
					if ref := (model.Ref{Collection: kind, Name: c.name}); kind != "targets" && want == "" && !pkg.Model.Invalid[ref] {
						t.Errorf("%s has not failed: %q", ref, ds)
					}
					for _, r := range order {
						failed := pkg.Model.Invalid[model.Ref{Collection: "registrations", Name: r}]
						if lost := want != "" && r != want; kind != "targets" && lost != failed {
							t.Errorf("%s failed: %t, and it lost: %t: %q", r, failed, lost, ds)
						}
						if holderOf(pkg.Model, r+"-own") != r {
							t.Errorf("%s is not there for what nobody else brings", r)
						}
					}
					said := strings.Join(ds, "\n")
					if !strings.Contains(said, first) || !strings.Contains(said, second) || who == "unread" && !strings.Contains(said, "registration lost") {
						t.Errorf("not all claimants are named: %s", said)
					}
				})
			}
		}
	}
}

// holderOf returns the owner of a workload, a target by its full name or a config: the name of
// a registration, or "platform". It returns "" if the entity does not exist, or if it is an
// invalid config.
func holderOf(env *model.Environment, name string) string {
	for _, w := range env.Workloads {
		if w.Name == name || slices.ContainsFunc(w.Targets, func(t model.DeploymentTarget) bool { return t.FullName == name }) {
			return cmp.Or(w.Registration, "platform")
		}
	}
	for _, c := range env.Configs {
		if c.Name == name && !c.Invalid {
			at := env.Positions.Of(model.Ref{Collection: "configs", Name: name})
			if file, _, registered := strings.Cut(at[0].File, "@"); registered {
				return file
			}
			return "platform"
		}
	}
	return ""
}

// TestRegisteredConfigLimits checks that unreadable configs fail the assignments that they may
// affect.
func TestRegisteredConfigLimits(t *testing.T) {
	for name, c := range map[string]struct{ registered, want string }{
		"layer":     {"configs: x: {match: {}, layer: 4, values: A: 1}", "K1305 config x is in layer 4, and registration limits allows 0 to 3 @limits@0a1b2c3d0a1b/x.cue:2:32"},
		"overrides": {"configs: x: {match: {}, overrides: A: 1}", "K1305 config x has overrides, which registration limits cannot bring @limits@0a1b2c3d0a1b/x.cue:2:25"},
		"broken":    {"configs: {", "K1001 { is not closed @limits@0a1b2c3d0a1b/x.cue:2:10"},
	} {
		t.Run(name, func(t *testing.T) {
			of := registrations[:strings.Index(registrations, "\tapp")] + registrations[strings.Index(registrations, "\tlimits"):]
			pkg, ds := withRegistered(t, of, "-- limits/x.cue --\npackage limits\n"+c.registered+"\n", nil)
			if len(ds) != 1 || ds[0] != c.want {
				t.Errorf("got %q, want %s", ds, c.want)
			}
			if len(pkg.Model.Configs) != 1 || !pkg.Model.Configs[0].Invalid || !strings.Contains(pkg.Model.Configs[0].Match.String(), "east") {
				t.Errorf("got %+v", pkg.Model.Configs)
			}
		})
	}
}

// TestRegisteredRemembered checks that the cache stores registered entities by their content,
// and returns the same entities.
func TestRegisteredRemembered(t *testing.T) {
	c := newMemory()
	const files = "-- app/deploy/app.cue --\npackage app\n\nworkloads: shop: deploymentTargets: a: {environment: \"dev\", manifests: git: {repo: \"https://x/y\", branch: \"b\"}}\n-- limits/x.cue --\npackage limits\nconfigs: x: match: {}\n"
	one, ds := withRegistered(t, registrations, files, c)
	two, again := withRegistered(t, registrations, files, c)
	if !slices.Equal(ds, again) || len(ds) > 0 {
		t.Errorf("%q, then %q", ds, again)
	}
	if a, b := model.Encode(one.Model.Workloads), model.Encode(two.Model.Workloads); !slices.Equal(a, b) {
		t.Error("the models differ")
	}
	other, _ := withRegistered(t, registrations, strings.ReplaceAll(files, "shop", "store"), c)
	if other.Model.Workloads[0].Name != "store" {
		t.Errorf("got %+v", other.Model.Workloads)
	}
}

const publishedSchemas = `
-- app/deploy/workload.yaml --
apiVersion: scheduler.kalypso.io/v1alpha1
kind: Workload
metadata:
  name: shop
spec:
  configSchemas:
    - |
      {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "required": ["REPLICAS"],
        "properties": {
          "REPLICAS": {"$ref": "#/definitions/n"},
          "MODES": {"type": "array", "items": [{"type": "string"}], "uniqueItems": true}
        },
        "definitions": {"n": {"type": "integer", "minimum": 1}}
      }
    - |
      type: object
      properties:
        NAME:
          $ref: "#/definitions/n"
      definitions:
        n: {type: string, maxLength: 5}
  deploymentTargets:
    - name: live
      environment: dev
      configSchemas:
        - '{"type": "object", "required": ["DB"]}'
      manifests: {repo: "https://git.example.test/app", branch: main, path: ./x, storage: git, type: kustomize, owner: me}
    - name: away
      environment: elsewhere
      manifests: {repo: "https://git.example.test/app", branch: main, path: ./x}
`

// TestPublishedWorkload checks that a published Workload can be registered unchanged. Its
// config schemas become contracts, each with its own definitions, and keep their positions. The
// other fields of its manifests are kept. A target of an environment that the platform does not
// have is left out.
func TestPublishedWorkload(t *testing.T) {
	pkg, ds := withRegistered(t, registrations, publishedSchemas+"-- limits/x.cue --\npackage limits\nconfigs: x: match: {}\n", nil)
	if want := []string{"K1301 there is no environment elsewhere: the deployment target is left out @app@0a1b2c3d0a1b/deploy/workload.yaml:32:20"}; !slices.Equal(ds, want) {
		t.Errorf("got %q", ds)
	}
	m := pkg.Model
	if len(m.Workloads) != 1 || len(m.Workloads[0].Targets) != 1 {
		t.Fatalf("got %+v", m.Workloads)
	}
	var fields []string
	for _, f := range m.Workloads[0].Requires.Fields {
		at := m.Positions.Of(m.Workloads[0].Requires.Ref.At(f.Path))
		fields = append(fields, fmt.Sprintf("%s %s @%v", f.Path, f.Text, at))
	}
	want := []string{
		"MODES list.UniqueItems() & [string, ...] @[{app@0a1b2c3d0a1b/deploy/workload.yaml 7 7}]",
		"NAME #n_2 @[{app@0a1b2c3d0a1b/deploy/workload.yaml 20 7}]",
		"REPLICAS #n @[{app@0a1b2c3d0a1b/deploy/workload.yaml 12 10}]",
	}
	if !slices.Equal(fields, want) {
		t.Errorf("got %q", fields)
	}
	live := m.Workloads[0].Targets[0]
	if live.Requires == nil || !slices.Equal(live.Requires.Mentions, []string{"DB"}) {
		t.Errorf("got %+v", live.Requires)
	}
	if got := string(live.Manifests.Attributes.AppendJSON(nil)); got != `{"owner":"me","storage":"git","type":"kustomize"}` {
		t.Errorf("got %s", got)
	}
}

// TestPublishedSchemaErrors checks that an invalid config schema fails only its workload or its
// deployment target, at its position.
func TestPublishedSchemaErrors(t *testing.T) {
	const place = " @app@0a1b2c3d0a1b/deploy/workload.yaml:"
	for name, c := range map[string]struct{ schema, want string }{
		"no text":        {`{type: object}`, "K1308 the config schema cannot be used: it is no text" + place + "13:11"},
		"no schema":      {`"hello"`, "K1308 the config schema cannot be used: "},
		"no JSON":        {`"{"`, "K1308 the config schema cannot be used: "},
		"empty":          {`""`, "K1308 the config schema cannot be used: "},
		"null":           {`null`, "K1308 the config schema cannot be used: it is no text"},
		"wrong type":     {`'{"type": "objekt"}'`, "K1308 the config schema cannot be used: "},
		"another":        {`'{"$ref": "https://schemas.example.test/x.json"}'`, "K1308 the config schema cannot be used: it refers to https://schemas.example.test/x.json, which is not in it"},
		"missing":        {`'{"$ref": "#/definitions/x"}'`, "K1308 the config schema cannot be used: "},
		"bad pattern":    {`'{"properties": {"A": {"pattern": "("}}}'`, "K1308 the config schema cannot be used: "},
		"no struct":      {`'{"type": "string"}'`, "K1402 the contract can never be satisfied: requires must be a struct, and is a string" + place + "13:11"},
		"unknown draft":  {`'{"$schema": "https://example.test/draft", "type": "object"}'`, "K1308 the config schema cannot be used: "},
		"unclosed":       {`'[[[[[['`, "K1308 the config schema cannot be used: "},
		"draft 4":        {`'{"properties": {"A": {"minimum": 1, "exclusiveMinimum": true}}}'`, ""},
		"draft 6":        {`'{"properties": {"A": {"exclusiveMinimum": 1, "const": 2}}}'`, ""},
		"anything":       {`'{}'`, ""},
		"itself":         {`'{"properties": {"A": {"$ref": "#"}}}'`, ""},
		"named like one": {`'{"$ref": "#/definitions/strings", "definitions": {"strings": {"properties": {"labels": {"type": "string", "maxLength": 3}, "strings": {"minLength": 1}}}}}'`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pkg, ds := evaluateRegistered(t, registrations, fmt.Sprintf(`
-- app/deploy/workload.yaml --
apiVersion: scheduler.kalypso.io/v1alpha1
kind: Workload
metadata:
  name: shop
spec:
  deploymentTargets:
    - name: live
      environment: dev
      manifests: {repo: "https://git.example.test/app", branch: main, path: ./x}
    - name: night
      environment: dev
      configSchemas:
        - %s
      manifests: {repo: "https://git.example.test/app", branch: main, path: ./x}
-- limits/x.cue --
package limits
configs: x: match: {}
`, c.schema), Options{})
			want := 2
			if c.want != "" {
				want = 1
			}
			if len(pkg.Model.Workloads) != 1 || len(pkg.Model.Workloads[0].Targets) != want || pkg.Model.Workloads[0].Targets[0].Name != "live" {
				t.Errorf("got %+v", pkg.Model.Workloads)
			}
			if c.want == "" && len(ds) > 0 || c.want != "" && (len(ds) != 1 || !strings.HasPrefix(ds[0], c.want) || !strings.Contains(ds[0], place+"13:11")) {
				t.Errorf("got %q, want %q", ds, c.want)
			}
		})
	}
}
