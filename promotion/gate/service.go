package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
)

func services(ctx context.Context, p Policy, f ChangeFacts) (vs []Verdict) {
	for _, gates := range p.Gates {
		for _, g := range gates.HTTP {
			ask := func(document json.RawMessage) answer { return service(ctx, g, f, document) }
			vs = append(vs, f.consult(ask).verdict(g.Name))
		}
	}
	return vs
}

// service sends the change to a service and returns its answer. If there is no answer, or an
// unreadable one, the result is pending. The service's URL is not part of the reason, as it may
// have a token in it.
func service(ctx context.Context, g model.HTTPGate, f ChangeFacts,
	document json.RawMessage) answer {
	if f.Post == nil {
		return answer{State: Pending, reason: g.Name + " cannot be asked from here"}
	}
	body, err := f.Post(ctx, g, document)
	var where *url.Error
	if errors.As(err, &where) {
		err = where.Err
	}
	if err != nil {
		return answer{State: Pending, reason: g.Name + " does not answer: " + printable(err.Error())}
	}
	a, err := parseAnswer(body)
	if err != nil {
		return answer{State: Pending,
			reason: "the answer of " + g.Name + " cannot be read: " + printable(err.Error())}
	}
	text := g.Name + " says " + string(a.State)
	if a.reason != "" {
		text += ": " + a.reason
	}
	if !a.until.After(f.Now) {
		a.until = time.Time{}
	}
	if !a.until.IsZero() {
		text += ", until " + instant(a.until)
	}
	a.reason = text
	return a
}

// parseAnswer reads an object with the fields status, reason and until, and rejects other fields.
// The last two may be absent or null. until is RFC 3339, and counts for pending only.
func parseAnswer(body []byte) (answer, error) {
	fields, err := object(body, "status", "reason", "until")
	if err != nil {
		return answer{}, err
	}
	var status, reason, until *string
	for _, field := range []struct {
		name string
		to   **string
	}{{"status", &status}, {"reason", &reason}, {"until", &until}} {
		if raw, found := fields[field.name]; found {
			if err := json.Unmarshal(raw, field.to); err != nil {
				return answer{}, fmt.Errorf("%s is no string", field.name)
			}
		}
	}
	if status == nil || !slices.Contains([]State{Passed, Pending, Blocked}, State(*status)) {
		return answer{}, errors.New("status is none of passed, pending and blocked")
	}
	a := answer{State: State(*status)}
	if reason != nil {
		a.reason = printable(*reason)
	}
	if until != nil {
		t, err := time.Parse(time.RFC3339, *until)
		if t = t.UTC(); err != nil || t.Year() < 1 || t.Year() > 9999 {
			return answer{}, errors.New("until is no time such as 2026-11-21T09:00:00Z")
		}
		if a.State == Pending {
			a.until = t
		}
	}
	return a, nil
}

// object reads a JSON object with some fields at most, each of them once and written
// just so: encoding/json takes the last of two, and STATUS for status.
func object(body []byte, names ...string) (map[string]json.RawMessage, error) {
	if !json.Valid(body) {
		return nil, errors.New("it is no JSON")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("it is no object")
	}
	fields := map[string]json.RawMessage{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		if _, twice := fields[name]; twice || !slices.Contains(names, name) {
			return nil, fmt.Errorf("field %q is there twice, or not wanted", name)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		fields[name] = value
	}
	return fields, nil
}
