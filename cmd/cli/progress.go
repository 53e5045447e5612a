package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluice-queue/sluice/cmd/internal/draw"
)

// progress shows how far a long command has come: on a terminal one line, overwritten; else a plain line every few
// seconds.
type progress struct {
	out   io.Writer
	verb  string
	total int
	live  bool
	begun time.Time
	said  time.Time
	shown bool // a line is on the terminal
	width int
}

const (
	liveInterval  = 100 * time.Millisecond
	plainInterval = 5 * time.Second
	barWidth      = 20
)

func (a *app) newProgress(verb string, total int) *progress {
	p := &progress{out: a.stderr, verb: verb, total: total, begun: time.Now(), width: terminalWidth(a.stderr)}
	p.live = p.width > 0
	if a.quiet {
		p.out = io.Discard
	}
	if !p.live {
		p.said = p.begun // first plain line after an interval
	}
	return p
}

// set shows how many are done, and more, at most a few times a second.
func (p *progress) set(done int, more string) {
	if p.due() {
		p.print(done, more)
	}
}

// say prints the caller's line, at most a few times a second.
func (p *progress) say(line string) {
	if p.due() {
		p.put(line)
	}
}

// due reports whether it is time to print again.
func (p *progress) due() bool {
	interval := plainInterval
	if p.live {
		interval = liveInterval
	}
	if time.Since(p.said) < interval {
		return false
	}
	p.said = time.Now()
	return true
}

// end prints the last figure and ends the line.
func (p *progress) end(done int, more string) {
	p.print(done, more)
	p.leave()
}

// leave ends a line on the terminal, so that other output can follow.
func (p *progress) leave() {
	if p.shown {
		fmt.Fprintln(p.out)
	}
	p.shown = false
}

func (p *progress) print(done int, more string) { p.put(p.line(done, more)) }

func (p *progress) put(line string) {
	if !p.live {
		fmt.Fprintln(p.out, line)
		return
	}
	fmt.Fprint(p.out, "\r\x1b[K"+cutEnd(line, p.width-1))
	p.shown = true
}

func (p *progress) line(done int, more string) string {
	rate := float64(done) / max(time.Since(p.begun).Seconds(), 0.001)
	if p.total <= 0 {
		return strings.TrimSpace(fmt.Sprintf("%s %s  %s/s  %s", p.verb, draw.Count(done), draw.Count(int(rate)), more))
	}
	line := fmt.Sprintf("%s %s  %s/%s  %s/s", p.verb, shareBar(done, p.total), draw.Count(done), draw.Count(p.total), draw.Count(int(rate)))
	if left := p.total - done; left > 0 && rate >= 1 && float64(left)/rate >= 1 {
		line += "  ETA " + draw.Duration(time.Duration(float64(left)/rate*float64(time.Second)))
	}
	return strings.TrimSpace(line + "  " + more)
}

// shareBar draws the done share of a total, with its whole per cent.
func shareBar(done, total int) string {
	share := min(float64(done)/float64(total), 1)
	full := int(share * barWidth)
	return fmt.Sprintf("▕%s%s▏ %3s %%", strings.Repeat("█", full), strings.Repeat("░", barWidth-full), draw.Percent(0, share))
}

// cutEnd drops the last parts between double blanks until a line fits.
func cutEnd(text string, width int) string {
	for utf8.RuneCountInString(text) > width && strings.Contains(text, "  ") {
		text = text[:strings.LastIndex(text, "  ")]
	}
	if runes := []rune(text); len(runes) > width && width > 0 {
		return string(runes[:width])
	}
	return text
}
