package schedule

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// maxSpan is the longest jitter and the longest window.
const maxSpan = 366 * 24 * time.Hour

// check returns the rule that a schedule breaks, as a [sluice.ErrInvalid].
func (s Schedule) check() error {
	if err := sluice.CheckQueueName(s.Name); err != nil {
		return feature.Invalid("name", fmt.Sprintf("%.80q must be 1 to 64 letters, digits and . _ : -, the first a letter or a digit", s.Name))
	}
	if utf8.RuneCountInString(s.Note) > 1000 {
		return feature.Invalid("note", "it must have at most 1000 characters")
	}
	if s.Declared != nil {
		if err := s.Declared.check(); err != nil {
			return err
		}
	}
	return s.Definition.check()
}

// check returns the rule that a definition breaks.
func (d Definition) check() error {
	if _, err := d.timing(); err != nil {
		return err
	}
	switch {
	case len(d.At) > MaxInstants:
		return feature.Invalid("at", fmt.Sprintf("%d instants must be at most %d", len(d.At), MaxInstants))
	case !d.Start.IsZero() && !d.End.IsZero() && d.End.Before(d.Start):
		return feature.Invalid("end", "it is before the start")
	case d.MaxFires < 0:
		return feature.Invalid("max_fires", "it is negative")
	case d.PauseAfter < 0 || d.PauseAfter > RecentFires:
		return feature.Invalid("pause_after", fmt.Sprintf("%d must be from 0 to %d", d.PauseAfter, RecentFires))
	case d.Jitter < 0 || d.Jitter > maxSpan:
		return feature.Invalid("jitter", fmt.Sprintf("%s must be from 0s to 366d", d.Jitter))
	case d.CatchUpWindow < 0 || d.CatchUpWindow > maxSpan:
		return feature.Invalid("catch_up_window", fmt.Sprintf("%s must be from 0s to 366d", d.CatchUpWindow))
	case !slices.Contains([]Overlap{Skip, QueueOne, QueueAll, CancelOther}, d.Overlap):
		return feature.Invalid("overlap", fmt.Sprintf("%.40q must be one of skip, queue one, queue all, cancel other", d.Overlap))
	case !slices.Contains([]CatchUp{Last, All, None}, d.CatchUp):
		return feature.Invalid("catch_up", fmt.Sprintf("%.40q must be one of last, all, none", d.CatchUp))
	}
	for field, at := range map[string]time.Time{"start": d.Start, "end": d.End} {
		if err := feature.CheckInstant(field, at); err != nil {
			return err
		}
	}
	return d.checkJob()
}

// checkJob checks the job that a fire makes, with an instant of the usual length.
func (d Definition) checkJob() error {
	if _, taken := d.Labels[Label]; taken {
		return feature.Invalid("labels", fmt.Sprintf("the label %q has the name of the schedule; choose another name", Label))
	}
	if !json.Valid(d.Payload) {
		return feature.Invalid("payload", "it must be JSON")
	}
	sample := Schedule{Name: "sample", Definition: d}
	return sample.insert(time.Unix(1e9, 0), sluice.ID{1}).Check()
}

// usual fills in the defaults of a definition, and gives its texts the one form in which they are compared.
func (d Definition) usual() Definition {
	d.Cron = strings.Join(strings.Fields(d.Cron), " ")
	if d.Zone == "UTC" {
		d.Zone = ""
	}
	if d.Overlap == "" {
		d.Overlap = Skip
	}
	if d.CatchUp == "" {
		d.CatchUp = Last
	}
	if d.CatchUpWindow == 0 {
		d.CatchUpWindow = DefaultWindow
	}
	if len(d.Payload) == 0 {
		d.Payload = json.RawMessage(`{"fire":"{{fire}}"}`)
	}
	d.Payload = feature.SortedJSON(d.Payload)
	if len(d.Labels) == 0 {
		d.Labels = nil
	}
	d.Start, d.End = feature.Instant(d.Start), feature.Instant(d.End)
	d.At = instants(d.At)
	return d
}

// instants sorts instants, and returns each once. None: nil.
func instants(all []time.Time) []time.Time {
	var out []time.Time
	for _, at := range all {
		if !at.IsZero() {
			out = append(out, feature.Instant(at))
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return slices.CompactFunc(out, time.Time.Equal)
}
