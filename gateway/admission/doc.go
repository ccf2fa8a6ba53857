// Package admission decides who may ask which app, and how much: keys and limits of the catalog and of
// the key file, counted for all listeners of a gateway together.
package admission
