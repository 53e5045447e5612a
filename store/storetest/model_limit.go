package storetest

import (
	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
)

// share changes the limit of the queue, and lets the queue share it or not.
func (m *machine) share(t *rapid.T) {
	m.tick()
	most, closed := rapid.SampledFrom([]int{0, 1, 2, 5}).Draw(t, "concurrency"), rapid.IntRange(0, 4).Draw(t, "closed if 0") == 0
	stored, err := limit.Change(m.ctx, m.store(t), m.queue, person("model"), func(l *limit.Limit) error {
		l.Concurrency, l.Closed = most, closed
		return nil
	})
	m.must(err)
	m.limit, m.settings.Limits = stored, ""
	if rapid.Bool().Draw(t, "shares it") {
		m.settings.Limits = m.queue
	}
	m.saveSettings()
}

// room returns how many more jobs the limit of the queue lets a claim take.
func (m *machine) room(most int) int {
	switch {
	case m.settings.Limits == "":
		return most
	case m.limit.Closed:
		return 0
	case m.limit.Concurrency == 0:
		return most
	}
	inFlight := len(m.strays)
	for _, j := range m.jobs {
		if j.state == sluice.StateClaimed || j.state == sluice.StateDispatched {
			inFlight++
		}
	}
	return min(most, max(0, m.limit.Concurrency-inFlight))
}

func (m *machine) pause(*rapid.T) {
	m.tick()
	m.settings.Paused = !m.settings.Paused
	m.saveSettings()
}
