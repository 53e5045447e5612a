package postgres

import "time"

// ForgetMarks makes the next claims walk from the front. Tests that move everything stored into the
// past call it: marks are positions in time.
func (s *Store) ForgetMarks() {
	for _, m := range []*marks{&s.marks, &s.lineMarks, &s.hintMarks, &s.staleMarks} {
		m.mu.Lock()
		m.queues = nil
		m.mu.Unlock()
	}
}

// SliceWaves makes counts of waves read so many jobs at a time.
func (s *Store) SliceWaves(jobs int64) { s.waveSlice = jobs }

// WalkedFor acts as if walking through the hints of a queue from the front took so long that it is not done soon again.
func (s *Store) WalkedFor(queue string, cost time.Duration) { s.hintMarks.walked(queue, cost) }

// FunctionsChecksum is the checksum of the text of the functions.
func FunctionsChecksum() (string, error) {
	_, checksum, err := functionSet()
	return checksum, err
}
