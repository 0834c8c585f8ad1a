from ragfilter import served

served.evaluate()
