from ragfilter import served

served.compare()
