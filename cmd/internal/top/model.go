package top

import (
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/sluice-queue/sluice"
)

// pane is the content of the lower half of the screen.
type pane int

const (
	paneHolders pane = iota
	paneTenants
	paneAlerts
	panes
)

// model is the state of the view.
type model struct {
	ctx     context.Context
	options Options

	width, height int
	snapshot      snapshot
	failed        error     // error of the last read; the screen shows older data
	since         time.Time // when reads began to fail
	chosen        string    // the queue that the keys act on
	pane          pane
	inspects      bool // only the chosen queue is shown
	detail        detail
	asks          *question
	told          string // the result of the last act
	help          bool
}

// question is asked on the last line before an act.
type question struct {
	text   string
	answer string
	do     func(reason string) tea.Cmd
}

// Messages to the program other than keys.
type (
	lookMsg     struct{}
	snapshotMsg struct {
		snapshot snapshot
		err      error
	}
	detailMsg struct {
		detail detail
		err    error
	}
	doneMsg struct {
		what string
		err  error
	}
)

func newModel(ctx context.Context, options Options) *model {
	return &model{ctx: ctx, options: options, width: options.Width, height: options.Height}
}

// Init starts the first read.
func (m *model) Init() tea.Cmd { return m.look() }

func (m *model) look() tea.Cmd {
	return func() tea.Msg {
		s, err := read(m.ctx, m.options)
		return snapshotMsg{s, err}
	}
}

func (m *model) lookClosely() tea.Cmd {
	if !m.inspects || m.chosen == "" {
		return nil
	}
	queue := m.chosen
	return func() tea.Msg {
		d, err := readDetail(m.ctx, m.options.Store, m.options.Client, queue)
		return detailMsg{d, err}
	}
}

// Update handles a message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case lookMsg:
		return m, tea.Batch(m.look(), m.lookClosely())
	case snapshotMsg:
		return m, m.take(msg)
	case detailMsg:
		if msg.err == nil && msg.detail.queue == m.chosen {
			m.detail = msg.detail
		}
	case doneMsg:
		m.told = msg.what
		if msg.err != nil {
			m.told = msg.err.Error()
		}
		return m, m.look()
	case tea.KeyPressMsg:
		return m, m.press(msg)
	}
	return m, nil
}

// take shows new data of the store, and schedules the next read. While the store is out of reach,
// the old data stays on the screen.
func (m *model) take(msg snapshotMsg) tea.Cmd {
	again := tea.Tick(m.options.Every, func(time.Time) tea.Msg { return lookMsg{} })
	if msg.err != nil {
		if m.failed == nil {
			m.since = time.Now()
		}
		m.failed = msg.err
		return again
	}
	m.failed, m.snapshot = nil, msg.snapshot
	if m.place() < 0 && len(m.snapshot.queues) > 0 {
		m.chosen = m.snapshot.queues[0].name()
	}
	return again
}

// place returns the position of the chosen queue. -1: the queue is gone.
func (m *model) place() int {
	return slices.IndexFunc(m.snapshot.queues, func(q queueRow) bool { return q.name() == m.chosen })
}

func (m *model) press(key tea.KeyPressMsg) tea.Cmd {
	if m.asks != nil {
		return m.answer(key)
	}
	m.told = ""
	switch key.String() {
	case "q", "ctrl+c":
		return tea.Quit
	case "?":
		m.help = !m.help
	case "esc":
		m.help, m.inspects = false, false
	case "up", "k":
		return m.move(-1)
	case "down", "j":
		return m.move(1)
	case "tab":
		m.pane = (m.pane + 1) % panes
	case "enter":
		m.inspects = m.chosen != ""
		return m.lookClosely()
	case "p":
		m.ask("pause")
	case "r":
		m.ask("resume")
	}
	return nil
}

// move chooses another queue.
func (m *model) move(by int) tea.Cmd {
	at := m.place()
	if at < 0 {
		return nil
	}
	m.chosen = m.snapshot.queues[min(max(at+by, 0), len(m.snapshot.queues)-1)].name()
	m.detail = detail{}
	return m.lookClosely()
}

// ask asks for the reason to pause or resume a queue. The act follows only after Enter.
func (m *model) ask(verb string) {
	queue := m.chosen
	if queue == "" {
		return
	}
	m.asks = &question{text: verb + " " + queue + ", because", do: func(reason string) tea.Cmd {
		return func() tea.Msg {
			ctx, cancel := context.WithTimeout(m.ctx, readTimeout)
			defer cancel()
			act := sluice.Act{By: m.options.By, Reason: reason, ID: sluice.NewID()}
			do := m.options.Client.Pause
			if verb == "resume" {
				do = m.options.Client.Resume
			}
			return doneMsg{verb + "d " + queue, do(ctx, queue, act)}
		}
	}}
}

// answer handles a key while a question is open.
func (m *model) answer(key tea.KeyPressMsg) tea.Cmd {
	switch key.String() {
	case "ctrl+c", "esc":
		m.asks = nil
	case "enter":
		q := m.asks
		m.asks = nil
		return q.do(q.answer)
	case "backspace":
		if text := []rune(m.asks.answer); len(text) > 0 {
			m.asks.answer = string(text[:len(text)-1])
		}
	default:
		m.asks.answer += key.Text
	}
	return nil
}
