package spelling

import "testing"

func TestNearest(t *testing.T) {
	labels := []string{"labels", "reconciler", "name", "on"}
	for word, want := range map[string]string{
		"lables": "labels", "label": "labels", "Labels": "labels", "reconcilers": "reconciler", "nmae": "name",
		"x": "", "size": "", "no": "on", "xy": "",
	} {
		if got := Nearest(word, labels); got != want {
			t.Errorf("Nearest(%s) = %q, want %q", word, got, want)
		}
	}
}

func TestMeant(t *testing.T) {
	for _, test := range []struct {
		word       string
		candidates []string
		want       string
	}{
		{"repository", []string{"oci", "repo", "version"}, "repo"},
		{"staging", []string{"dev", "prod", "stage"}, "stage"},
		{"production", []string{"dev", "prod"}, "prod"},
		{"east", []string{"east-us", "eastern"}, ""},
		{"cart-b", []string{"cart-one"}, ""},
		{"in", []string{"interval"}, ""},
		{"regoin", []string{"reg", "region"}, "region"},
	} {
		if got := Meant(test.word, test.candidates); got != test.want {
			t.Errorf("Meant(%s, %v) = %q, want %q", test.word, test.candidates, got, test.want)
		}
	}
}

func TestMisspelt(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"region", "regoin", true},
		{"restricted", "restrcted", true},
		{"functional-test", "functionall-test", true},
		{"Munich", "munich", true},
		{"line2-munich", "line2-munick", true},
		{"s1", "s2", false},
		{"line-1", "line-2", false},
		{"station1", "station2", false},
		{"station", "station2", false},
		{"plant-01-north", "plant-02-north", false},
		{"east", "west", false},
		{"east-us", "west-us", false},
		{"zone-a", "zone-b", false},
		{"large", "small", false},
		{"large", "larger-one", false},
		{"light", "right", false},
		{"patch", "batch", false},
		{"region", "region", false},
		{"region", "religion", false},
		{"north-plants-alpha", "north-plant-alphas", false},
		{"", "a", false},
		{"--", "-", false},
	} {
		if Misspelt(c.a, c.b) != c.want || Misspelt(c.b, c.a) != c.want {
			t.Errorf("misspelt(%q, %q) is not %v", c.a, c.b, c.want)
		}
	}
}
