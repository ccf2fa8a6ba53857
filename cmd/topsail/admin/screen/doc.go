// Package screen writes for people: aligned tables, times and sizes in units that they
// read, colours where there is a terminal, and questions. What comes from a server is
// cleaned of everything that a terminal would obey.
package screen
