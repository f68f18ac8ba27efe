package notify

import (
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// Event is the kind of an occurrence, the subject of a message.
type Event string

// The events.
const (
	Promoted  Event = "promoted"  // a ring has a new release
	Completed Event = "completed" // all of the release was ok for the first time
	Failed    Event = "failed"    // more of the release has failed than the platform allows
	Drifted   Event = "drifted"   // assignments run content that was never promoted
	Stale     Event = "stale"     // clusters have not reported for a while
	// Conflicting is for names with which two clusters report.
	Conflicting Event = "conflicting"
)

// Events returns all events.
func Events() []Event { return []Event{Promoted, Completed, Failed, Drifted, Stale, Conflicting} }

// Message is a message, as webhooks receive it, and the data of templates.
type Message struct {
	// ID is the same if a message is sent again, and differs for each other message.
	ID          string    `json:"id"`
	Event       Event     `json:"event"`
	Environment string    `json:"environment"`
	Ring        string    `json:"ring,omitempty"`
	At          time.Time `json:"at"` // when it happened
	// For a release: its commits, and its author.
	Commit  string `json:"commit,omitempty"`
	Base    string `json:"base,omitempty"`
	Own     string `json:"own,omitempty"`
	Author  string `json:"author,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Seconds is the time from the commit to the completion.
	Seconds int `json:"seconds,omitempty"`
	// Counts are the counts of the ring or the environment when the message is made.
	Counts api.Counts `json:"counts"`
	// Clusters is the number of clusters that it is about, and First has the first of them, in
	// words.
	Clusters int      `json:"clusters,omitempty"`
	First    []string `json:"first,omitempty"`
	Link     string   `json:"link,omitempty"` // of the hub's page
	Text     string   `json:"text"`
}

// Where returns the environment, with the ring.
func (m *Message) Where() string {
	if m.Ring == "" {
		return m.Environment
	}
	return m.Environment + "/" + m.Ring
}

// List returns the names of the first clusters, and how many more there are.
func (m *Message) List() string {
	text := strings.Join(m.First, ", ")
	if more := m.Clusters - len(m.First); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Took returns the time until the completion, in words.
func (m *Message) Took() string { return (time.Duration(m.Seconds) * time.Second).String() }

// defaults are the templates for targets without one.
var defaults = map[Event]*template.Template{
	Promoted: mustTemplate(
		`{{.Where}} has {{short .Base}} now{{with .Subject}}: {{.}}{{end}}{{with .Author}} ({{.}}){{end}}`),
	Completed: mustTemplate(
		`{{.Where}}: {{short .Base}} is complete: {{.Counts.OK}}/{{.Counts.Wanted}} ok, {{.Took}} after it was committed`),
	Failed: mustTemplate(
		`{{.Where}}: {{short .Base}} has failed: {{.Counts.OK}}/{{.Counts.Wanted}} ok, {{.Counts.Failed}} failed{{with .List}}: {{.}}{{end}}`),
	Drifted: mustTemplate(
		`{{.Where}}: {{.Counts.Drifted}} assignments have drifted, on {{.Clusters}} clusters: {{.List}}`),
	Stale: mustTemplate(
		`{{.Where}}: there is no news of {{.Clusters}} clusters, with {{.Counts.Stale}} assignments: {{.List}}`),

	Conflicting: mustTemplate(
		`{{.Where}}: two clusters report by one name, for {{.Clusters}} names: {{.List}}`),
}

func newTemplate(text string) (*template.Template, error) {
	return template.New("").Option("missingkey=error").Funcs(template.FuncMap{"short": short}).Parse(
		text)
}

func mustTemplate(text string) *template.Template { return template.Must(newTemplate(text)) }

// short shortens a commit's id.
func short(id string) string { return id[:min(len(id), 7)] }

// maxText limits the text of a message, because Slack cuts off longer ones.
const maxText = 4000

// execute executes a template for a message.
func execute(t *template.Template, m *Message) (string, error) {
	var b limitBuilder
	if err := t.Execute(&b, m); err != nil && !errors.Is(err, errLong) {
		return "", err
	}
	return strings.TrimSpace(strings.ToValidUTF8(b.String(), "")), nil
}

var errLong = errors.New("the text is too long")

// limitBuilder keeps the first bytes that are written.
type limitBuilder struct{ strings.Builder }

func (b *limitBuilder) Write(p []byte) (int, error) {
	if room := maxText - b.Len(); len(p) > room {
		_, _ = b.Builder.Write(p[:room])
		return room, errLong
	}
	return b.Builder.Write(p)
}

// samples returns messages to try templates on: one with all fields that an event can have, and one
// without the optional fields.
func samples(e Event) []*Message {
	const id = "0123456789012345678901234567890123456789"
	full := &Message{ID: "chat/" + string(e) + "/prod/canary/" + id, Event: e, Environment: "prod",
		Link: "https://hub.example.com/rollouts/prod"}
	least := &Message{ID: full.ID, Event: e, Environment: "p"}
	for _, m := range []*Message{full, least} {
		switch e {
		case Promoted, Completed, Failed:
			m.Commit, m.Base = id, id
		default:
			m.Clusters, m.First = 1, []string{"a"}
		}
	}
	if full.Commit != "" {
		full.Ring, full.Own, full.Author, full.Subject = "canary", id, "ann", "Promote"
	}
	switch e {
	case Completed:
		full.Seconds = 60
	case Failed: // the clusters may be well again when the message is made
		full.Clusters, full.First = 1, []string{"a"}
	}
	return []*Message{full, least}
}

// failedTemplate is appended to the default text if the template of a target fails.
const failedTemplate = " (the text is the default one: the template of this target failed)"

// text sets the text of a message for a target. It sanitizes foreign text for terminals, and
// escapes it for Slack. If the template fails, text uses the default text of the event, and returns
// the error.
func (t *Target) text(m *Message) error {
	plain := func(text string) string { return text }
	if t.Kind == Slack {
		plain = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
	}
	safe := *m
	for _, field := range []*string{&safe.Environment, &safe.Ring, &safe.Commit, &safe.Base, &safe.Own,
		&safe.Author, &safe.Subject} {
		*field = plain(terminal.Line(*field))
	}
	safe.First = nil
	for _, name := range m.First {
		safe.First = append(safe.First, plain(terminal.Line(name)))
	}
	var failure error
	if t.template != nil {
		if m.Text, failure = execute(t.template, &safe); failure == nil {
			return nil
		}
	}
	text, err := execute(defaults[m.Event], &safe)
	if m.Text = text; failure != nil {
		m.Text += failedTemplate
	}
	return errors.Join(failure, err)
}
