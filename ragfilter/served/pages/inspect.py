from ragfilter import served

served.inspect()
