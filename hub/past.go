package hub

import (
	"context"
	"fmt"
	"time"
)

// CountedWithin is the maximum age of the counts of an earlier moment at that moment. They are
// written at least this often, unless other work keeps the hub busy.
const CountedWithin = tallyEvery + expireEvery

// AboutPast returns a warning for an answer about a moment. It says that the moment is in the
// future, that the hub no longer knows all of it, or that the hub knew nothing at the time. It
// returns "" if the answer is complete.
func (h *Hub) AboutPast(ctx context.Context, at time.Time) (string, error) {
	word := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	now, keep := h.options.Now(), h.options.Keep
	if at.After(now) {
		return fmt.Sprintf("%s is to come: this is how it is at %s", word(at), word(now)), nil
	}
	oldest, err := h.options.Store.Oldest(ctx)
	switch {
	case err != nil:
		return "", err
	case oldest.IsZero():
		return "this hub knows of nothing yet", nil
	case at.Before(oldest):
		return fmt.Sprintf("this hub knows of nothing before %s", word(oldest)), nil
	case keep > 0 && at.Before(now.Add(-keep)):
		return fmt.Sprintf("this hub keeps what changed for %d days: of %s it knows only what nothing "+
			"else has replaced until %s", int(keep.Hours()/24), word(at), word(now.Add(-keep))), nil
	}
	return "", nil
}
