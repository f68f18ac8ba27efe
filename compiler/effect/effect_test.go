package effect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/tree"
)

// sideOf returns a side of folders, each as "name: target=tree ...", and of clusters, each as
// "name folder". Namespaces are called as their deployment targets, or as in target@namespace.
func sideOf(folders []string, clusters ...string) *Side {
	s := &Side{Folders: map[string]int{}}
	all := map[string][]Assignment{}
	for _, f := range folders {
		name, list, _ := strings.Cut(f, ":")
		for _, a := range strings.Fields(list) {
			target, id, _ := strings.Cut(a, "=")
			target, namespace, found := strings.Cut(target, "@")
			if !found {
				namespace = target
			}
			all[name] = append(all[name], Assignment{target, namespace, tree.ID(id)})
		}
		slices.SortFunc(all[name], func(a, b Assignment) int { return strings.Compare(a.DeploymentTarget, b.DeploymentTarget) })
		s.Folders[name] = len(all[name])
	}
	for _, c := range clusters {
		name, folder, _ := strings.Cut(c, " ")
		s.Clusters = append(s.Clusters, Cluster{Name: name, Folder: strings.Trim(folder, "!?"), Entry: strings.HasSuffix(folder, "!"), OnlyListed: strings.HasSuffix(folder, "?")})
	}
	s.Assigned = func(folder string) ([]Assignment, error) { return all[folder], nil }
	return s
}

// text returns the differences, a line for each pair.
func text(e *Effect) string {
	var out []string
	for i := range e.Pairs {
		p := &e.Pairs[i]
		sign := "~"
		switch {
		case p.Added():
			sign = "+"
		case p.Removed():
			sign = "-"
		case p.Renames():
			sign = "="
		}
		out = append(out, fmt.Sprintf("%s %s/%s on %s", sign, p.ClusterType(), p.DeploymentTarget(), strings.Join(p.Way.Clusters, ",")))
	}
	for _, w := range e.Ways {
		if w.Emptied {
			out = append(out, "empty "+strings.Join(w.Clusters, ","))
		}
	}
	return strings.Join(append(out, fmt.Sprintf("%d of %d to %d", e.Unchanged, e.Before, e.After)), "\n")
}

func TestOf(t *testing.T) {
	shop := []string{"shop: cart=1 till=1"}
	for name, c := range map[string]struct {
		before, after *Side
		want          string
	}{
		"nothing": {sideOf(shop, "a shop"), sideOf(shop, "a shop"), "2 of 2 to 2"},
		"a type without clusters counts as one": {
			sideOf(shop), sideOf([]string{"shop: cart=2"}), "~ shop/cart on \n- shop/till on \n0 of 2 to 1",
		},
		"a class takes one away": {
			sideOf(shop, "a shop", "b shop"), sideOf([]string{"shop: cart=1 till=1", "shop.no: cart=1"}, "a shop", "b shop.no"),
			"- shop/till on b\n3 of 4 to 3",
		},
		"a folder that nobody follows is nothing": {
			sideOf(append(shop, "shop.old: x=1"), "a shop"), sideOf(append(shop, "shop.new: y=1"), "a shop"), "2 of 2 to 2",
		},
		"clusters that are emptied": {
			sideOf(shop, "a shop", "b shop"), sideOf([]string{"shop: cart=1 till=1", "shop.no:"}, "a shop", "b shop.no"),
			"- shop/cart on b\n- shop/till on b\nempty b\n2 of 4 to 2",
		},
		"clusters that come and go": {
			sideOf(shop, "a shop", "b shop"), sideOf(shop, "b shop", "c shop"),
			"- shop/cart on a\n+ shop/cart on c\n- shop/till on a\n+ shop/till on c\n2 of 4 to 4",
		},
		"clusters that nobody listed before were there": {
			sideOf(shop), sideOf([]string{"shop: cart=1 till=2"}, "a shop", "b shop"), "~ shop/till on a,b\n2 of 4 to 4",
		},
		"clusters that nobody lists any more stay": {sideOf(shop, "a shop"), sideOf(shop), "2 of 2 to 2"},
		"the first cluster that is listed comes from elsewhere": {
			sideOf([]string{"shop: cart=1 till=1", "bank: cart=1"}, "a bank"), sideOf([]string{"shop: cart=1", "bank: cart=1"}, "a shop"),
			"- shop/till on \n2 of 3 to 2",
		},
		"the last machine goes":    {sideOf(shop, "a shop?"), sideOf(shop), "- shop/cart on a\n- shop/till on a\n0 of 2 to 0"},
		"the first machine comes":  {sideOf(shop), sideOf(shop, "a shop?"), "+ shop/cart on a\n+ shop/till on a\n0 of 0 to 2"},
		"the last entry goes":      {sideOf(shop, "a shop!"), sideOf(shop), "- shop/cart on a\n- shop/till on a\n0 of 2 to 0"},
		"a cluster type that goes": {sideOf(shop, "a shop"), sideOf(nil), "- shop/cart on a\n- shop/till on a\n0 of 2 to 0"},
		"another namespace":        {sideOf(shop, "a shop"), sideOf([]string{"shop: cart@x=2 till=1"}, "a shop"), "= shop/cart on a\n1 of 2 to 2"},
		"another cluster type": {
			sideOf([]string{"shop: cart=1 till=1", "bank: cart=1"}, "a shop", "b bank"), sideOf([]string{"shop: cart=1 till=1", "bank: cart=1"}, "a bank", "b bank"),
			"- shop/till on a\n2 of 3 to 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Compare(c.before, c.after, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := text(e); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestSameFoldersAreNotRead checks that a folder that is known to be equal is read only if
// clusters move to it from another one.
func TestSameFoldersAreNotRead(t *testing.T) {
	shop := []string{"shop: till=1", "shop.x: till=2", "bank: desk=1"}
	before, after := sideOf(shop, "a shop", "b bank"), sideOf(shop, "a shop.x", "b bank")
	var read []string
	for _, s := range []*Side{before, after} {
		assigned := s.Assigned
		s.Assigned = func(folder string) ([]Assignment, error) {
			read = append(read, folder)
			return assigned(folder)
		}
	}
	e, err := Compare(before, after, func(string) bool { return true })
	if err != nil || text(e) != "~ shop/till on a\n1 of 2 to 2" || !slices.Equal(read, []string{"shop", "shop.x"}) {
		t.Errorf("%s, %v, read %v", text(e), err, read)
	}
	broken := errors.New("broken")
	after.Assigned = func(string) ([]Assignment, error) { return nil, broken }
	if _, err := Compare(before, after, nil); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestRemovals(t *testing.T) {
	many := func(folder string, from, to int) (out []string) {
		for i := from; i < to; i++ {
			out = append(out, fmt.Sprintf("c%02d %s", i, folder))
		}
		return out
	}
	two := []string{"shop: cart=1 till=1", "shop.no: cart=1", "shop.none:"}
	twenty := sideOf(two, many("shop", 0, 20)...)
	without := func(folder string, n int) *Side {
		return sideOf(two, append(many(folder, 0, n), many("shop", n, 20)...)...)
	}
	for name, c := range map[string]struct {
		before, after *Side
		limits        Limits
		want          string // of Excess
	}{
		"one of many":          {twenty, without("shop.no", 1), Limits{Max: "1"}, ""},
		"three clusters":       {twenty, without("shop.no", 3), Limits{Max: "1"}, ""},
		"zero is zero":         {twenty, without("shop.no", 1), Limits{Max: "0"}, "1 of 40 assignments are removed (limit: 0)"},
		"a quarter":            {twenty, without("shop.no", 10), Limits{}, ""},
		"more than a quarter":  {twenty, without("shop.no", 11), Limits{}, "11 of 40 assignments are removed (limit: 10)"},
		"a part":               {twenty, without("shop.no", 4), Limits{Max: "7.5%"}, "4 of 40 assignments are removed (limit: 3)"},
		"emptied":              {twenty, without("shop.none", 1), Limits{}, "1 cluster is left empty: c00 (limit: 0)"},
		"emptied by name":      {twenty, without("shop.none", 2), Limits{MayEmpty: []string{"c00", "c01"}}, ""},
		"emptied by number":    {twenty, without("shop.none", 3), Limits{Emptied: "2"}, "3 clusters are left empty: c00, c01, c02 (limit: 2)"},
		"emptied by part":      {twenty, without("shop.none", 4), Limits{Emptied: "20%"}, ""},
		"all are emptied":      {twenty, without("shop.none", 20), Limits{Max: "100%", Emptied: "100%"}, "all 40 assignments are removed, and nothing is left"},
		"no longer listed":     {twenty, sideOf(two, many("shop", 6, 20)...), Limits{}, "6 of 20 clusters are removed (limit: 5)"},
		"removed by name":      {twenty, sideOf(two, many("shop", 2, 20)...), Limits{Max: "0", Clusters: []string{"c00", "c01"}}, ""},
		"three assignments":    {sideOf([]string{"a: x=1 y=1 z=1 w=1"}), sideOf([]string{"a: w=1"}), Limits{}, ""},
		"four assignments":     {sideOf([]string{"a: x=1 y=1 z=1 w=1 v=1"}), sideOf([]string{"a: w=1"}), Limits{}, "4 of 5 assignments are removed (limit: 1)"},
		"many of few clusters": {sideOf([]string{"a: t=1 u=1 v=1 w=1 x=1 y=1"}, "p a", "q a"), sideOf([]string{"a: t=1"}, "p a", "q a"), Limits{}, "10 of 12 assignments are removed from 2 clusters (limit: 3)"},
		"other namespaces": {
			sideOf([]string{"a: w=1 x=1 y=1 z=1"}), sideOf([]string{"a: w@1=2 x@2=2 y@3=2 z@4=2"}), Limits{}, "4 of 4 assignments are removed (limit: 1)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Compare(c.before, c.after, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := e.Removals(c.limits, func(*Pair) bool { return true }).Excess(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
