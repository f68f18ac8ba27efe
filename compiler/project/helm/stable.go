package helm

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
)

// unstable are the functions of templates that give something else each time, and
// how a second render calls them so that it surely differs where one is called, as
// a text and as a number. Two renders within a second have the same time, and two
// random digits are the same one time in ten; "" is for functions that never repeat
// themselves.
var unstable = map[string]string{
	"now": `(toDate "2006-01-02" "2001-02-03")`, "ago": `printf "%v ago"`,
	"date": "", "dateInZone": "", "date_in_zone": "", "htmlDate": "", "htmlDateInZone": "", "durationRound": "",
	"randInt": "max", "shuffle": `printf "%s shuffled"`,
	"randAlpha": `printf "%v letters"`, "randAlphaNum": `printf "%v characters"`, "randAscii": `printf "%v of ascii"`, "randNumeric": `printf "-1%v"`,
	"randBytes": "", "uuidv4": "",
	"genPrivateKey": "", "genCA": "", "genCAWithKey": "", "genSelfSignedCert": "", "genSelfSignedCertWithKey": "", "genSignedCert": "", "genSignedCertWithKey": "",
	"bcrypt": "", "htpasswd": "", "encryptAES": "",
}

// unordered are the functions that give the parts of a map in any order, which
// many charts sort afterwards. The order of keys can be chosen; for values, which
// are of any kind, a chart is rendered more often, as they come in the same order
// by chance.
var unordered = []string{"keys", "values"}

const moreOften = 6

// checkStable renders a chart again, with what was made up in the first render
// made up differently, and refuses it where the outputs differ.
//
// Templates are made to differ. A text of the values that goes through tpl is not,
// as it may as well be a text for somebody else: that it tells the time shows when
// the time has changed between two renders.
func checkStable(req Request, first *rendered) error {
	calls := called(first.chart)
	orders := []string{"| sortAlpha"}
	if calls.has("keys") {
		orders = append(orders, "| sortAlpha | reverse")
	}
	if calls.has("values") {
		orders = append(orders, slices.Repeat(orders[:1], moreOften)...)
	}
	for _, order := range orders {
		second, err := render(req, func(text []byte) []byte { return rewrite(text, order) })
		if err != nil {
			// A function that is called otherwise may give what the template cannot use.
			if refused := (*refusal.Error)(nil); errors.As(err, &refused) && refused.Code == diag.Render {
				return unstableAt(req, first, named(first, refused.Message))
			}
			return err
		}
		if name, differs := difference(first.files, second.files); differs {
			return unstableAt(req, first, name)
		}
	}
	return nil
}

// difference returns the first template whose outputs differ.
func difference(a, b map[string]string) (string, bool) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if a[name] != b[name] {
			return name, true
		}
	}
	return "", false
}

// named returns the first template whose name a message has.
func named(r *rendered, message string) string {
	for _, name := range slices.Sorted(maps.Keys(templates(r.chart))) {
		if strings.Contains(message, name) {
			return name
		}
	}
	return ""
}

func unstableAt(req Request, r *rendered, template string) error {
	message := "chart " + r.name + " renders to something else each time"
	if template != "" {
		message += ": see " + template
	}
	if functions := culprits(req, r, template); len(functions) > 0 {
		message += ", which uses " + strings.Join(functions, ", ")
	}
	return refusal.New(diag.Unstable, "give the chart as a value what it makes up, such as a password by reference to a secret, or let the reconciler render the chart", "%s", message)
}

// culprits returns the functions by which a template's output may differ, those of
// the templates that it includes and of values that go through tpl among them.
func culprits(req Request, r *rendered, template string) []string {
	functions := called(r.chart).reachable(template)
	var found []string
	for name := range unstable {
		if functions[name] {
			found = append(found, name)
		}
	}
	if len(found) == 0 && functions["tpl"] {
		found = inValues(req.Values, r.chart)
	}
	if len(found) == 0 {
		for _, name := range unordered {
			if functions[name] {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	// What formats the time is only to blame where nothing tells the time.
	if slices.Contains(found, "now") {
		found = slices.DeleteFunc(found, func(name string) bool {
			return strings.HasPrefix(strings.ToLower(name), "date") || strings.HasPrefix(name, "html")
		})
	}
	return found
}

var action = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
var word = regexp.MustCompile(`[A-Za-z0-9_]+`)

// inValues returns the unstable functions that texts among the values name.
func inValues(v model.Value, ch *chart.Chart) []string {
	text := v.String()
	for _, f := range ch.Raw {
		if f.Name == "values.yaml" {
			text += string(f.Data)
		}
	}
	var found []string
	for _, a := range action.FindAllString(text, -1) {
		for _, w := range word.FindAllString(a, -1) {
			if _, ok := unstable[w]; ok {
				found = append(found, w)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
