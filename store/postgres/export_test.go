package postgres

// ForgetMarks makes the next claims walk from the front. Tests that move everything stored into the
// past call it: marks are positions in time.
func (s *Store) ForgetMarks() {
	s.marks.mu.Lock()
	defer s.marks.mu.Unlock()
	s.marks.queues = nil
}
