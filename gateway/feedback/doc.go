// Package feedback learns from what clients say of answers. A Recorder leaves records
// of answers in a store that all gateways share; a Joiner finds the record that feedback
// means, or predicts again where there is none, judges every model by the label or the
// reward, has the app's policy learn, and sends the label on to the models' containers.
package feedback
