package evaluate

import (
	"testing"
)

func TestSelectors(t *testing.T) {
	for match, want := range map[string]string{
		`{}`:                                      `*`,
		`{region: "east"}`:                        `region: "east"`,
		`{region: "east", size: "small"}`:         `region: "east" & size: "small"`,
		`{region: "east" | "west"}`:               `region: ("east" | "west")`,
		`{region: string}`:                        `region: *`,
		`{region: _}`:                             `region: *`,
		`{region?: "east"}`:                       `region?: "east"`,
		`{region!: "east"}`:                       `region: "east"`,
		`{edge?: _|_}`:                            `edge?: none`,
		`{region: =~"^east"}`:                     `region: satisfies =~"^east"`,
		`{region: !~"x" & =~"^e"}`:                `region: (satisfies !~"x" & satisfies =~"^e")`,
		`{region: "east"} | {size: "small"}`:      `(region: "east" | size: "small")`,
		`{region: "east"} & {size: "small"}`:      `region: "east" & size: "small"`,
		`{"use-case": "a b"}`:                     `use-case: "a b"`,
		`{region: or(_regions)}`:                  `region: ("east" | "west")`,
		`{region: _regions[0]}`:                   `region: "east"`,
		`{#Edge, size: "small"}`:                  `edge: "true" & size: "small"`,
		`{region: matchN(0, ["east"])}`:           `region: satisfies matchN(0, ["east"])`,
		`{region: strings.MinRunes(3) & =~"^ea"}`: `region: (satisfies =~"^ea" & satisfies strings.MinRunes(3))`,
		`{if true {region: "east"}}`:              `region: "east"`,
		`{_local: "x", region: _local}`:           `region: "x"`,
	} {
		t.Run(match, func(t *testing.T) {
			pkg := healthy(t, `
import "strings"
_use: strings.MinRunes(0)
_regions: ["east", "west"]
#Edge: {edge: "true"}
configs: c: match: `+match)
			if got := describe(pkg.Model.Configs[0].Match); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestSidesOfPolicies(t *testing.T) {
	pkg := healthy(t, `schedulingPolicies: p: {
	deploymentTargets: {workspace: "team", labels: {edge?: "true"}}
	clusterTypes: {}
	except: clusterTypes: labels: region: "east"
}`)
	p := pkg.Model.SchedulingPolicies[0]
	for side, got := range map[string]string{
		`labels: edge?: "true" & workspace: "team"`: describe(p.DeploymentTargets),
		`*`:                      describe(p.ClusterTypes),
		`labels: region: "east"`: describe(p.Except[0].ClusterTypes),
	} {
		if got != side {
			t.Errorf("got %s, want %s", got, side)
		}
	}
	if got := describe(p.Except[0].DeploymentTargets); got != "*" {
		t.Errorf("an absent side of except is %s, not everything", got)
	}
}
