package sluice

import (
	"encoding/json"
	"sync"
)

// maxToldTexts bounds how many texts of settings are remembered. Most queues share a few.
const maxToldTexts = 1000

// toldTexts remembers the settings that texts of the audit stand for. Upkeep compares the settings of every queue with what
// the audit was told of them, each second, and to read a text takes longer than all else that it does for the queue.
var toldTexts = toldReader{read: make(map[string]Settings)}

// toldReader reads each text once.
type toldReader struct {
	mu   sync.Mutex
	read map[string]Settings
}

// settings gives the settings that a text stands for, with the defaults for those that it does not name; false: it cannot be
// read.
func (t *toldReader) settings(text string) (Settings, bool) {
	t.mu.Lock()
	settings, known := t.read[text]
	t.mu.Unlock()
	if known {
		return settings, true
	}
	settings = DefaultSettings()
	if text == "" || json.Unmarshal([]byte(text), &settings) != nil {
		return DefaultSettings(), false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.read) >= maxToldTexts {
		clear(t.read)
	}
	t.read[text] = settings
	return settings, true
}
